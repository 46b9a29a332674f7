import { Group, Switch, Table, Text } from '@mantine/core';
import { IconArrowDownRight, IconArrowUpRight, IconFlag } from '@tabler/icons-react';
import { useState } from 'react';
import { Panel } from '@/components/Panel';
import { metricText } from '@/format/metrics';
import { deltaText, judge, type ComparedRun, type Comparison, type MetricRow } from './comparison';
import classes from './compare.module.css';
import { RunHead } from './RunHead';

interface Props {
  comparison: Comparison;
  onBaseline: (id: number) => void;
  /** Absent if only two runs are left. */
  onRemove: ((id: number) => void) | undefined;
}

/** Every figure of every run, with its difference from the baseline; a column per run, or a row per run. */
export function MetricTable(props: Props) {
  const { runs, metrics } = props.comparison;
  const [transposed, setTransposed] = useState(runs.length > 6);
  const [all, setAll] = useState(false);
  const known = metrics.filter((row) => row.values.some((value) => value !== null && value !== 0));
  const common = known.filter((row) => row.values.filter((value) => value !== null).length > 1);
  const shown = all ? known : common;
  return (
    <Panel
      title="Results"
      about="differences from the baseline; ↓ lower is better, ↑ higher is better"
      testId="metrics"
      flush
      extra={
        <Group gap="md">
          {known.length > common.length && (
            <Switch
              size="xs"
              label="also what one run alone has"
              checked={all}
              onChange={(event) => setAll(event.currentTarget.checked)}
              data-testid="all-metrics"
            />
          )}
          <Switch
            size="xs"
            label="a row per run"
            checked={transposed}
            onChange={(event) => setTransposed(event.currentTarget.checked)}
            data-testid="transpose"
          />
        </Group>
      }
    >
      <Table.ScrollContainer minWidth={transposed ? 260 + shown.length * 150 : 260 + runs.length * 170}>
        {transposed ? <RowPerRun {...props} shown={shown} /> : <ColumnPerRun {...props} shown={shown} />}
      </Table.ScrollContainer>
    </Panel>
  );
}

type Shown = Props & { shown: MetricRow[] };

function ColumnPerRun({ comparison: { runs, baseline }, onBaseline, onRemove, shown }: Shown) {
  return (
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
              <Title row={row} />
            </Table.Td>
            {runs.map((run, at) => (
              <Table.Td key={run.id} data-base={run.id === baseline || undefined}>
                <Value row={row} run={run} at={at} isBase={run.id === baseline} />
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function RowPerRun({ comparison: { runs, baseline }, onBaseline, onRemove, shown }: Shown) {
  return (
    <Table className={classes.table} verticalSpacing={7}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th w={220}>run</Table.Th>
          {shown.map((row) => (
            <Table.Th key={row.name}>
              <Title row={row} />
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {runs.map((run, at) => (
          <Table.Tr key={run.id} data-base={run.id === baseline || undefined}>
            <Table.Td>
              <RunHead
                run={run}
                at={at}
                isBase={run.id === baseline}
                onBaseline={onBaseline}
                onRemove={onRemove}
              />
            </Table.Td>
            {shown.map((row) => (
              <Table.Td key={row.name}>
                <Value row={row} run={run} at={at} isBase={run.id === baseline} />
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Title({ row }: { row: MetricRow }) {
  return (
    <>
      {row.title}
      {row.better && (
        <Text size="xs" c="dimmed" span title={`${row.better} is better`}>
          {' '}
          {row.better === 'lower' ? '↓' : '↑'}
        </Text>
      )}
    </>
  );
}

interface ValueProps {
  row: MetricRow;
  run: ComparedRun;
  at: number;
  isBase: boolean;
}

function Value({ row, run, at, isBase }: ValueProps) {
  const value = row.values[at] ?? null;
  const delta = row.deltas[at] ?? null;
  const verdict = isBase ? null : judge(delta, row.better, run.cautions);
  const Arrow = delta !== null && delta < 0 ? IconArrowDownRight : IconArrowUpRight;
  const deciding = run.cautions.filter(({ decides }) => decides).map(({ sentence }) => sentence);
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
              {deciding.length > 0 && row.better !== null && (
                <IconFlag
                  size={13}
                  className={classes.flag}
                  role="img"
                  aria-label={`Not comparable: ${deciding.join(' ')}`}
                  data-testid={`flag-${row.name}-${at}`}
                />
              )}
            </>
          )}
        </span>
      )}
    </span>
  );
}
