import { Button, Card, Center, Group, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type SubmitEvent, useState } from 'react';
import { api, sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import { useDocumentTitle } from '@/components/Page';
import { Logo } from '@/components/Logo';

interface LoginWays {
  provider: { name: string; address: string } | null;
}

/** The log-in form, and the way to an OpenID provider if the server has one. */
export function LoginPage() {
  useDocumentTitle('Log in');
  const client = useQueryClient();
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const { data: ways } = useQuery({
    queryKey: ['login'],
    queryFn: ({ signal }) => api.get<LoginWays>('/login', signal),
  });

  const logIn = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError('');
    try {
      await api.post('/login', { username, password });
      await client.invalidateQueries();
    } catch (problem) {
      setError(sentence(problem));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Center mih="100vh" p="md">
      <Stack w={400} gap="lg">
        <Group gap="md" wrap="nowrap">
          <Logo size={46} />
          <div>
            <Title order={1} fz={24}>
              EdgeLoom
            </Title>
            <Text c="dimmed" size="sm">
              Transformers on edge clusters, emulated and measured
            </Text>
          </div>
        </Group>
        <Card padding="lg">
          <form onSubmit={logIn}>
            <Stack>
              <TextInput
                label="User name"
                autoFocus
                autoComplete="username"
                required
                withAsterisk={false}
                data-testid="login-username"
                value={username}
                onChange={(event) => setUsername(event.currentTarget.value)}
              />
              <PasswordInput
                label="Password"
                autoComplete="current-password"
                required
                withAsterisk={false}
                data-testid="login-password"
                value={password}
                onChange={(event) => setPassword(event.currentTarget.value)}
              />
              {error && <ErrorPanel message={error} />}
              <Button type="submit" loading={busy} data-testid="login-submit">
                Log in
              </Button>
              {ways?.provider && (
                <Button
                  component="a"
                  href={ways.provider.address}
                  variant="default"
                  data-testid="login-provider"
                >
                  Log in with {ways.provider.name}
                </Button>
              )}
            </Stack>
          </form>
        </Card>
        <Text size="xs" c="dimmed">
          The first start of EdgeLoom created the account “admin” and printed its password in the terminal.
        </Text>
      </Stack>
    </Center>
  );
}
