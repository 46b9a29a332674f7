import { ActionIcon, Anchor, Badge, Group, Radio, Table, Text } from '@mantine/core';
import { IconArrowDownRight, IconArrowUpRight, IconX } from '@tabler/icons-react';
import { Link } from 'react-router';
import { Panel } from '@/components/Panel';
import { metricText } from '@/format/metrics';
import { deviceColor } from '@/theme/deviceColors';
import { deltaText, judge, type ComparedRun, type Comparison, type MetricRow } from './comparison';
import classes from './compare.module.css';

interface Props {
  comparison: Comparison;
  onBaseline: (id: number) => void;
  /** Absent if only two runs are left. */
  onRemove: ((id: number) => void) | undefined;
}

/** Every figure of every run, with its difference from the baseline. */
export function MetricTable({ comparison, onBaseline, onRemove }: Props) {
  const { runs, metrics, baseline } = comparison;
  const shown = metrics.filter((row) => row.values.some((value) => value !== null && value !== 0));
  return (
    <Panel
      title="Results"
      about="differences from the baseline; ↓ lower is better, ↑ higher is better"
      testId="metrics"
      flush
    >
      <Table.ScrollContainer minWidth={260 + runs.length * 170}>
        <Table className={classes.table} verticalSpacing={7}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={220} className={classes.corner}>
                run
              </Table.Th>
              {runs.map((run, at) => (
                <Table.Th key={run.id} data-base={run.id === baseline || undefined}>
                  <RunHead
                    run={run}
                    at={at}
                    isBase={run.id === baseline}
                    onBaseline={onBaseline}
                    onRemove={onRemove}
                  />
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map((row) => (
              <Table.Tr key={row.name} data-testid={`metric-${row.name}`}>
                <Table.Td>
                  {row.title}
                  {row.better && (
                    <Text size="xs" c="dimmed" span title={`${row.better} is better`}>
                      {' '}
                      {row.better === 'lower' ? '↓' : '↑'}
                    </Text>
                  )}
                </Table.Td>
                {runs.map((run, at) => (
                  <Table.Td key={run.id} data-base={run.id === baseline || undefined}>
                    <Value row={row} at={at} isBase={run.id === baseline} />
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

interface HeadProps {
  run: ComparedRun;
  at: number;
  isBase: boolean;
  onBaseline: (id: number) => void;
  onRemove: ((id: number) => void) | undefined;
}

function RunHead({ run, at, isBase, onBaseline, onRemove }: HeadProps) {
  return (
    <div className={classes.head}>
      <Group gap={6} wrap="nowrap" justify="space-between">
        <Anchor component={Link} to={`/runs/${run.id}`} className={classes.runName} title={run.name}>
          <span className={classes.dot} style={{ background: deviceColor(at) }} />
          {run.name}
        </Anchor>
        {onRemove && (
          <ActionIcon
            size="xs"
            variant="subtle"
            color="gray"
            onClick={() => onRemove(run.id)}
            aria-label={`Remove run ${run.id}`}
            data-testid={`remove-${run.id}`}
          >
            <IconX size={13} />
          </ActionIcon>
        )}
      </Group>
      <Group gap={6}>
        <Radio
          size="xs"
          label="baseline"
          checked={isBase}
          onChange={() => onBaseline(run.id)}
          name="baseline"
          data-testid={`baseline-${run.id}`}
        />
        {run.outcome !== 'finished' && (
          <Badge size="xs" color="red" variant="light" tt="none">
            {run.outcome.replaceAll('_', ' ')}
          </Badge>
        )}
        {run.correct === false && (
          <Badge size="xs" color="red" variant="light" tt="none">
            not correct
          </Badge>
        )}
        {run.valid === false && (
          <Badge size="xs" color="orange" variant="light" tt="none">
            not valid
          </Badge>
        )}
        {run.world === 'simulated' && (
          <Badge size="xs" color="gray" variant="light" tt="none">
            predicted
          </Badge>
        )}
      </Group>
    </div>
  );
}

function Value({ row, at, isBase }: { row: MetricRow; at: number; isBase: boolean }) {
  const value = row.values[at] ?? null;
  const delta = row.deltas[at] ?? null;
  const verdict = isBase ? null : judge(delta, row.better);
  const Arrow = delta !== null && delta < 0 ? IconArrowDownRight : IconArrowUpRight;
  return (
    <span className={classes.value}>
      <span data-testid={`value-${row.name}-${at}`}>{metricText(value, row.unit)}</span>
      {!isBase && delta !== null && value !== null && (
        <span
          className={classes.delta}
          data-verdict={verdict ?? undefined}
          title={verdict ?? undefined}
          data-testid={`delta-${row.name}-${at}`}
        >
          {verdict === 'same' ? (
            'same'
          ) : (
            <>
              <Arrow size={14} stroke={2.2} aria-hidden />
              {deltaText(delta)}
              {verdict && <span className={classes.word}>{verdict}</span>}
            </>
          )}
        </span>
      )}
    </span>
  );
}
