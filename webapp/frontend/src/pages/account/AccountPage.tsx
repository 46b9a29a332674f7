import { SimpleGrid, Stack, Text } from '@mantine/core';
import { type Account, useAccount } from './account';
import { sentence } from '@/api/client';
import { AuditPanel } from './AuditPanel';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { Panel } from '@/components/Panel';
import { PasswordForm } from './PasswordForm';
import { TokensPanel } from './TokensPanel';

/** One's own account: what one may do, the password, and API tokens. */
export function AccountPage() {
  const account = useAccount();
  return (
    <Page title="Account" about={account.data ? `You are logged in as ${account.data.user}.` : undefined}>
      {account.isError && (
        <ErrorPanel message={sentence(account.error)} onRetry={() => void account.refetch()} />
      )}
      {account.data && (
        <>
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
            <RolePanel account={account.data} />
            <Panel title="Password" about="ends your other sessions; tokens stay valid">
              <PasswordForm user={account.data.user} />
            </Panel>
          </SimpleGrid>
          <TokensPanel account={account.data} />
          {account.data.role === 'admin' && <AuditPanel />}
        </>
      )}
    </Page>
  );
}

const RIGHTS: Record<Account['role'], string> = {
  viewer: 'You may look at everything and change nothing.',
  operator:
    'You may look at everything, start runs and experiments, draw clusters, and change what is yours.',
  admin: 'You may look at and change everything, and give other people their roles.',
};

function RolePanel({ account }: { account: Account }) {
  return (
    <Panel title="Role" about="given by an administrator">
      <Stack gap={4}>
        <Text fw={600} data-testid="account-role">
          {account.role}
        </Text>
        <Text size="sm" c="dimmed">
          {RIGHTS[account.role]}
        </Text>
      </Stack>
    </Panel>
  );
}
