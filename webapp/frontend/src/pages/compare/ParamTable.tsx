import { Switch, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Panel } from '@/components/Panel';
import { paramTexts } from '@/format/metrics';
import type { Comparison } from './comparison';
import classes from './compare.module.css';

/** The parameters of all runs, field by field; by default only those that differ. */
export function ParamTable({ comparison }: { comparison: Comparison }) {
  const [onlyDiffering, setOnlyDiffering] = useState(true);
  const differing = comparison.params.filter((row) => row.differs).length;
  const rows = onlyDiffering ? comparison.params.filter((row) => row.differs) : comparison.params;
  return (
    <Panel
      title="Parameters"
      about={`${differing} of ${comparison.params.length} differ`}
      testId="params"
      flush
      extra={
        <Switch
          size="xs"
          label="only what differs"
          checked={onlyDiffering}
          data-testid="only-differing"
          onChange={(event) => setOnlyDiffering(event.currentTarget.checked)}
        />
      }
    >
      {rows.length === 0 ? (
        <Text size="sm" c="dimmed" p="md">
          Nothing differs: the same spec, run {comparison.runs.length} times.
        </Text>
      ) : (
        <div className={classes.params} role="region" aria-label="Parameters of the runs" tabIndex={0}>
          <Table className={classes.table} verticalSpacing={5} stickyHeader>
            <Table.Thead>
              <Table.Tr>
                <Table.Th w={320}>Field</Table.Th>
                {comparison.runs.map((run) => (
                  <Table.Th key={run.id}>
                    {run.id} {run.name}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row) => (
                <Table.Tr
                  key={row.path}
                  data-differs={row.differs || undefined}
                  data-testid={`param-${row.path}`}
                >
                  <Table.Td className="mono">{row.path}</Table.Td>
                  {paramTexts(row.path, row.values).map((text, at) => (
                    <Table.Td key={at} className={classes.param} title={text}>
                      {text}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </Panel>
  );
}
