import { Badge, Table, Text } from '@mantine/core';
import { Panel } from '@/components/Panel';
import type { ClaimAnswer, Verdict } from '@/experiment/data/answers';
import classes from './result.module.css';

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
      <Table className={classes.table} verticalSpacing={7}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={150}>Verdict</Table.Th>
            <Table.Th>Claim</Table.Th>
            {several && <Table.Th w={100}>World</Table.Th>}
            <Table.Th>Found</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {claims.map(({ name, text, where, world, verdict, found, reason }) => (
            <Table.Tr key={`${name} ${world}`} data-testid={`claim-${name}`}>
              <Table.Td>
                <Badge variant="light" color={VERDICT_COLOR[verdict]}>
                  {verdict}
                </Badge>
              </Table.Td>
              <Table.Td>
                {text}
                {where && (
                  <Text span size="xs" c="dimmed">
                    {' '}
                    {where}
                  </Text>
                )}
              </Table.Td>
              {several && <Table.Td>{world}</Table.Td>}
              <Table.Td>
                {found}
                {reason && (
                  <Text size="sm" c="dimmed">
                    {reason}
                  </Text>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}
