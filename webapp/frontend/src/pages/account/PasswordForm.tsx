import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { type SubmitEvent, useState } from 'react';
import { ApiError, api, sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';

/** Change one's own password: the present one and the new one. */
export function PasswordForm({ user }: { user: string }) {
  const [current, setCurrent] = useState('');
  const [wanted, setWanted] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState(false);
  const [busy, setBusy] = useState(false);

  const change = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setDone(false);
    setError(null);
    try {
      await api.post('/account/password', { current, new: wanted });
      setCurrent('');
      setWanted('');
      setDone(true);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const about = (field: string) => (error instanceof ApiError ? error.about(field) : undefined);

  return (
    <form onSubmit={change}>
      <Stack gap="sm">
        <input type="text" name="username" autoComplete="username" value={user} readOnly hidden />
        <PasswordInput
          label="Current password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          value={current}
          error={about('current')}
          onChange={(event) => setCurrent(event.currentTarget.value)}
          data-testid="password-current"
        />
        <PasswordInput
          label="New password"
          description="At least 8 characters, not a common one."
          autoComplete="new-password"
          required
          withAsterisk={false}
          value={wanted}
          error={about('new')}
          onChange={(event) => setWanted(event.currentTarget.value)}
          data-testid="password-new"
        />
        {error !== null && !about('current') && !about('new') && <ErrorPanel message={sentence(error)} />}
        <Group gap="md">
          <Button type="submit" loading={busy} data-testid="password-submit">
            Change password
          </Button>
          {done && (
            <Text size="sm" c="green" role="status">
              The password is changed.
            </Text>
          )}
        </Group>
      </Stack>
    </form>
  );
}
