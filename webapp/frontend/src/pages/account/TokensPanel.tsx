import {
  Alert,
  Badge,
  Button,
  Code,
  CopyButton,
  Group,
  Select,
  Stack,
  Text,
  TextInput,
  VisuallyHidden,
} from '@mantine/core';
import { type SubmitEvent, useState } from 'react';
import { ApiError, api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import { DataTable } from '@/components/DataTable';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Panel } from '@/components/Panel';
import { useConfirm } from '@/components/useConfirm';
import { useNow } from '@/components/useNow';
import { ago } from '@/format/units';
import { type Account, type NewToken, ROLES, type Role, type Token, rolesUpTo } from './account';

/** API tokens: make one, see the secret once, revoke. */
export function TokensPanel({ account }: { account: Account }) {
  const [made, setMade] = useState<NewToken | null>(null);
  return (
    <Panel title="API tokens" about="with one, a program acts for you" testId="tokens">
      <Stack gap="md">
        <TokenForm role={account.role} onMade={setMade} />
        {made && <Secret token={made} onClose={() => setMade(null)} />}
        {account.tokens.length > 0 ? (
          <TokenTable tokens={account.tokens} />
        ) : (
          <Text size="sm" c="dimmed">
            You have no tokens.
          </Text>
        )}
      </Stack>
    </Panel>
  );
}

function TokenForm({ role, onMade }: { role: Role; onMade: (token: NewToken) => void }) {
  const [name, setName] = useState('');
  const [wanted, setWanted] = useState<Role>(role === 'viewer' ? 'viewer' : 'operator');
  const make = useChange('account', (body: { name: string; role: Role }) =>
    api.post<NewToken>('/account/tokens', body),
  );
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    make.mutate(
      { name, role: wanted },
      {
        onSuccess: (token) => {
          setName('');
          onMade(token);
        },
      },
    );
  };
  const aboutName = make.error instanceof ApiError ? make.error.about('name') : undefined;
  return (
    <form onSubmit={submit}>
      <Group align="flex-end" gap="sm">
        <TextInput
          label="Name"
          placeholder="what it is for"
          required
          withAsterisk={false}
          maxLength={100}
          w={280}
          value={name}
          error={aboutName}
          onChange={(event) => setName(event.currentTarget.value)}
          data-testid="token-name"
        />
        <Select
          label="Role"
          data={rolesUpTo(role)}
          allowDeselect={false}
          w={150}
          value={wanted}
          onChange={(value) => setWanted(ROLES.find((each) => each === value) ?? 'viewer')}
        />
        <Button type="submit" loading={make.isPending} data-testid="token-make">
          Make a token
        </Button>
      </Group>
      {make.isError && !aboutName && <ErrorPanel message={sentence(make.error)} />}
    </form>
  );
}

/** The only time that anybody sees the secret. */
function Secret({ token, onClose }: { token: NewToken; onClose: () => void }) {
  return (
    <Alert
      color="teal"
      variant="light"
      title={`Copy the token “${token.name}” now: it is not shown again`}
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
    >
      <Group gap="sm" mb="xs">
        <Code fz="sm" data-testid="token-secret">
          {token.secret}
        </Code>
        <CopyButton value={token.secret}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="default" onClick={copy}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Text size="xs" c="dimmed">
        A program sends it with each request: <Code>Authorization: Bearer {token.hint}…</Code>
      </Text>
    </Alert>
  );
}

function TokenTable({ tokens }: { tokens: Token[] }) {
  const now = useNow();
  const [dialog, ask] = useConfirm();
  const revoke = useChange('account', (id: number) => api.delete<void>(`/account/tokens/${id}`));
  return (
    <>
      {dialog}
      {revoke.isError && <ErrorPanel message={sentence(revoke.error)} />}
      <DataTable
        rows={tokens}
        keyOf={({ id }) => id}
        columns={[
          { head: 'Name', cell: ({ name }) => name },
          { head: 'Starts with', cell: ({ hint }) => <Code>{hint}…</Code> },
          {
            head: 'Role',
            cell: ({ role }) => (
              <Badge variant="light" color={role === 'viewer' ? 'gray' : 'blue'}>
                {role}
              </Badge>
            ),
          },
          { head: 'Made', cell: (token) => ago(token.created_at, now) },
          {
            head: 'Last used',
            cell: (token) => (token.last_used_at ? ago(token.last_used_at, now) : 'never'),
          },
          {
            head: <VisuallyHidden>Actions</VisuallyHidden>,
            look: { ta: 'right' },
            cell: ({ id, name }) => (
              <Button
                size="compact-sm"
                variant="subtle"
                color="red"
                data-testid={`revoke-${name}`}
                onClick={() =>
                  ask({
                    title: 'Revoke this token?',
                    text: `Programs that use “${name}” are refused from then on.`,
                    action: 'Revoke',
                    onConfirm: () => revoke.mutate(id),
                  })
                }
              >
                Revoke
              </Button>
            ),
          },
        ]}
      />
    </>
  );
}
