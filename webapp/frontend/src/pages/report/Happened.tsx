import { Table } from '@mantine/core';
import type { RunDetail } from '@/api/types';
import { Panel } from '@/components/Panel';
import { maybe, percent, seconds } from '@/format/units';
import type { RunData } from '@/run/data/runData';
import type { Effect } from '@/run/data/effects';
import { happenings } from './happenings';
import { nameOf } from './predictions';
import classes from './report.module.css';

/** By what factor a token must change to be told. */
const SEEN = 1.05;

/** Every change of the cluster and of the plan: when, what, who made it, and the time of a token before and after. */
export function Happened({ run, data }: { run: RunDetail; data: RunData | undefined }) {
  const rows = happenings(run.finding?.changes ?? [], data, run.report?.predictions.from_here_on ?? []);
  if (rows.length === 0) return null;
  const isPredicted = rows.some(({ rest }) => rest !== null);
  const isKnownBy = rows.some(({ by }) => by !== '');
  return (
    <Panel
      title="What happened"
      about="times of a token: the median of up to 12 tokens before and after each change"
      testId="happened"
      flush
    >
      <Table.ScrollContainer minWidth={760}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th ta="right" w={100}>
                at
              </Table.Th>
              <Table.Th>Change</Table.Th>
              {isKnownBy && <Table.Th>By</Table.Th>}
              <Table.Th ta="right">Token before</Table.Th>
              <Table.Th ta="right">Token after</Table.Th>
              <Table.Th ta="right">Longest</Table.Th>
              <Table.Th ta="right">Effect</Table.Th>
              {isPredicted && (
                <Table.Th ta="right" title="End-to-end latency, predicted while the run went on">
                  {nameOf('from_here_on')}
                </Table.Th>
              )}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(({ key, time_s, label, by, effect, rest }) => (
              <Table.Tr key={key} data-testid="happening">
                <Table.Td ta="right">{seconds(time_s)}</Table.Td>
                <Table.Td fw={500}>{label}</Table.Td>
                {isKnownBy && <Table.Td c="dimmed">{by}</Table.Td>}
                <Table.Td ta="right">{maybe(effect?.before_s, seconds)}</Table.Td>
                <Table.Td ta="right">{maybe(effect?.after_s, seconds)}</Table.Td>
                <Table.Td ta="right">{maybe(effect?.worst_s, seconds)}</Table.Td>
                <Table.Td ta="right">{effect ? changeText(effect) : '–'}</Table.Td>
                {isPredicted && (
                  <Table.Td ta="right">{rest ? `${seconds(rest.latency_s)} in all` : '–'}</Table.Td>
                )}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

/** "+90 %", from 5 % on as in the report's sentences; "one pause" where only the worst token was that much longer. */
function changeText({ before_s, after_s, worst_s }: Effect): string {
  const ratio = after_s / before_s;
  if (!Number.isFinite(ratio)) return '–';
  if (Math.max(ratio, 1 / ratio) < SEEN) return worst_s / before_s < SEEN ? 'none' : 'one pause';
  return `${ratio > 1 ? '+' : '−'}${percent(Number(Math.abs(ratio - 1).toFixed(2)))}`;
}
