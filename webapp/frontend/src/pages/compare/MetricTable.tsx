import { Group, Switch, Table, Text } from '@mantine/core';
import { IconArrowDownRight, IconArrowUpRight, IconFlag } from '@tabler/icons-react';
import { useState } from 'react';
import { Panel } from '@/components/Panel';
import { marginText, metricText } from '@/format/metrics';
import { type Column, type Comparison, deltaText, hasValue, isShared, type MetricRow } from './comparison';
import classes from './compare.module.css';
import { GroupHead } from './GroupHead';
import { RunHead } from './RunHead';

interface Props {
  comparison: Comparison;
  /** Whether it answers an earlier choice. */
  stale: boolean;
  onGrouped: (grouped: boolean) => void;
  onBaseline: (id: number) => void;
  /** Absent if only two runs are left. */
  onRemove: ((id: number) => void) | undefined;
}

/** Every figure of every run or group of repeats, with its difference from the baseline; a column per run, or a row. */
export function MetricTable({ comparison, stale, onGrouped, onBaseline, onRemove }: Props) {
  const { metrics, runs, columns, grouped, has_repeats: hasRepeats } = comparison;
  const [turned, setTurned] = useState<boolean | null>(null);
  const transposed = turned ?? columns.length > 6;
  const [all, setAll] = useState(false);
  const known = metrics.filter(hasValue);
  const common = known.filter(isShared);
  const shown = all ? known : common;
  const headOf = (column: Column) =>
    column.label ? (
      <GroupHead column={column} runs={column.runs.map((at) => runs[at]!)} onBaseline={onBaseline} />
    ) : (
      <RunHead
        run={runs[column.runs[0]!]!}
        at={column.runs[0]!}
        isBase={column.is_base}
        onBaseline={onBaseline}
        onRemove={onRemove}
      />
    );
  const Body = transposed ? RowPerRun : ColumnPerRun;
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
              label="also figures that only one run has"
              checked={all}
              onChange={(event) => setAll(event.currentTarget.checked)}
              data-testid="all-metrics"
            />
          )}
          {hasRepeats && (
            <Switch
              size="xs"
              label="group repeats"
              checked={grouped}
              onChange={(event) => onGrouped(event.currentTarget.checked)}
              data-testid="group-repeats"
            />
          )}
          <Switch
            size="xs"
            label={grouped && hasRepeats ? 'a row per group' : 'a row per run'}
            checked={transposed}
            onChange={(event) => setTurned(event.currentTarget.checked)}
            data-testid="transpose"
          />
        </Group>
      }
    >
      <Table.ScrollContainer
        minWidth={260 + (transposed ? shown.length * 150 : columns.length * 170)}
        className={stale ? classes.stale : undefined}
      >
        <Body columns={columns} headOf={headOf} shown={shown} grouped={grouped && hasRepeats} />
      </Table.ScrollContainer>
    </Panel>
  );
}

interface BodyProps {
  columns: readonly Column[];
  headOf: (column: Column) => React.ReactNode;
  shown: readonly MetricRow[];
  grouped: boolean;
}

function ColumnPerRun({ columns, headOf, shown, grouped }: BodyProps) {
  return (
    <Table className={classes.table} verticalSpacing={7}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th miw={190} className={classes.corner}>
            {grouped ? 'group' : 'run'}
          </Table.Th>
          {columns.map((column) => (
            <Table.Th key={column.runs.join(' ')} data-base={column.is_base || undefined}>
              {headOf(column)}
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
            {columns.map((column, at) => (
              <Table.Td key={column.runs.join(' ')} data-base={column.is_base || undefined}>
                <Value row={row} column={column} at={at} />
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function RowPerRun({ columns, headOf, shown, grouped }: BodyProps) {
  return (
    <Table className={classes.table} verticalSpacing={7}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th miw={220}>{grouped ? 'group' : 'run'}</Table.Th>
          {shown.map((row) => (
            <Table.Th key={row.name}>
              <Title row={row} />
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {columns.map((column, at) => (
          <Table.Tr key={column.runs.join(' ')} data-base={column.is_base || undefined}>
            <Table.Td>{headOf(column)}</Table.Td>
            {shown.map((row) => (
              <Table.Td key={row.name}>
                <Value row={row} column={column} at={at} />
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
  column: Column;
  at: number;
}

const VERDICT_TITLES = {
  unclear: 'This difference may be chance: repeats of one run differ as much.',
} as const;

function Value({ row, column, at }: ValueProps) {
  const { average, delta, verdict } = row.cells[at]!;
  if (!average) return <span data-testid={`value-${row.name}-${at}`}>–</span>;
  const inUnit = (value: number) => metricText(value, row.unit);
  const text = inUnit(average.mean);
  const margin = average.margin === null ? '' : marginText(average.margin, inUnit);
  const Arrow = delta !== null && delta < 0 ? IconArrowDownRight : IconArrowUpRight;
  const deciding = column.cautions.filter(({ decides }) => decides).map(({ sentence }) => sentence);
  const lacking = column.runs.length - average.count;
  return (
    <span className={classes.value}>
      <span data-testid={`value-${row.name}-${at}`}>
        {text}
        {margin && <span className={classes.margin}>{margin}</span>}
        {lacking > 0 && <span className={classes.margin}> of {average.count} runs</span>}
      </span>
      {delta !== null && (
        <span
          className={classes.delta}
          data-verdict={verdict ?? undefined}
          title={verdict === 'unclear' ? VERDICT_TITLES.unclear : (verdict ?? undefined)}
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
