import { Badge, Text } from '@mantine/core';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import type { ClaimAnswer, Verdict } from '@/experiment/data/answers';

const VERDICT_COLOR: Record<Verdict, string> = {
  holds: 'teal',
  'holds in direction': 'yellow',
  'does not hold': 'red',
  'not known': 'gray',
};

/** Checkable sentences about the results, each with its verdict and, where it does not hold, the reason. */
export function Claims({ claims }: { claims: readonly ClaimAnswer[] }) {
  if (claims.length === 0) return null;
  const several = new Set(claims.map(({ world }) => world)).size > 1;
  const holding = claims.filter(({ verdict }) => verdict === 'holds').length;
  return (
    <Panel title="Claims" about={`${holding} of ${claims.length} hold`} testId="claims" flush>
      <DataTable
        flush
        verticalSpacing={7}
        rows={claims}
        keyOf={({ name, world }) => `${name} ${world}`}
        testId={({ name }) => `claim-${name}`}
        columns={[
          {
            head: 'Verdict',
            width: 150,
            cell: ({ verdict }) => (
              <Badge variant="light" color={VERDICT_COLOR[verdict]}>
                {verdict}
              </Badge>
            ),
          },
          {
            head: 'Claim',
            cell: ({ text, where }) => (
              <>
                {text}
                {where && (
                  <Text span size="xs" c="dimmed">
                    {' '}
                    {where}
                  </Text>
                )}
              </>
            ),
          },
          several && { head: 'World', width: 100, cell: ({ world }) => world },
          {
            head: 'Found',
            cell: ({ found, reason }) => (
              <>
                {found}
                {reason && (
                  <Text size="sm" c="dimmed">
                    {reason}
                  </Text>
                )}
              </>
            ),
          },
        ]}
      />
    </Panel>
  );
}
