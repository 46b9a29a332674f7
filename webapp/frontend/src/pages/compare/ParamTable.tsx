import { Switch, Text } from '@mantine/core';
import { useState } from 'react';
import { DataTable } from '@/components/DataTable';
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
          <DataTable
            flush
            stickyHeader
            verticalSpacing={5}
            rows={rows}
            keyOf={({ path }) => path}
            testId={({ path }) => `param-${path}`}
            columns={[
              { head: 'Field', width: 320, look: { className: 'mono' }, cell: ({ path }) => path },
              ...comparison.runs.map(({ id, name }, at) => ({
                head: `${id} ${name}`,
                look: { className: classes.param },
                cell: ({ path, values }: Comparison['params'][number]) => {
                  const text = paramTexts(path, values)[at];
                  return <span title={text}>{text}</span>;
                },
              })),
            ]}
          />
        </div>
      )}
    </Panel>
  );
}
