import { Text } from '@mantine/core';
import type { RunDetail } from '@/api/types';
import { seconds } from '@/format/units';
import { PARTS, StackBar, totalOf } from '@/run/charts/StackBar';
import { Legend } from '@/components/Legend';
import { Panel } from '@/components/Panel';
import { attributionColors } from '@/theme/spanColors';
import classes from './compare.module.css';

/** The time of every run by cause, on one scale. */
export function Stacks({ runs }: { runs: RunDetail[] }) {
  const reports = runs.map((run) => ({ run, parts: run.report?.attribution }));
  const scale = Math.max(...reports.map(({ parts }) => (parts ? totalOf(parts) : 0)));
  if (scale === 0) return null;
  const used = PARTS.filter(({ key }) => reports.some(({ parts }) => parts && parts[key] > 0));
  return (
    <Panel
      title="Where the time went"
      about="along each run's critical path, on one scale"
      testId="compare-attribution"
    >
      <div className={classes.stacks}>
        {reports.map(
          ({ run, parts }) =>
            parts && (
              <div key={run.id} className={classes.stackRow}>
                <Text size="sm" truncate title={run.name}>
                  {run.id} {run.name}
                </Text>
                <StackBar attribution={parts} scale_s={scale} />
                <Text size="sm" ta="right">
                  {seconds(totalOf(parts))}
                </Text>
              </div>
            ),
        )}
      </div>
      <Legend entries={used.map(({ key, label }) => ({ label, color: attributionColors[key] }))} />
    </Panel>
  );
}
