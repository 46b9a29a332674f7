import { Text } from '@mantine/core';
import type { RunReport } from '@/api/types';
import { isMeasured } from '@/api/worlds';
import { percent, seconds } from '@/format/units';
import { PARTS, StackBar, totalOf } from '@/run/charts/StackBar';
import { Legend } from '@/components/Legend';
import { Panel } from '@/components/Panel';
import { attributionColors } from '@/theme/spanColors';
import classes from './report.module.css';

/** The end-to-end time by cause along the critical path; measured above predicted, on one scale. */
export function Attribution({ report }: { report: RunReport }) {
  const measured = report.attribution;
  const predicted = report.predictions.with_all_changes_known?.attribution;
  const total = totalOf(measured);
  if (total === 0) return null;
  const scale = Math.max(total, predicted ? totalOf(predicted) : 0);
  return (
    <Panel
      title="Where the time went"
      about={`along the critical path; the parts add up to ${seconds(total)}`}
      testId="attribution"
    >
      <div className={classes.attribution}>
        <Text size="sm">{isMeasured(report.world) ? 'measured' : 'predicted'}</Text>
        <StackBar attribution={measured} scale_s={scale} />
        <Text size="sm" ta="right" data-testid="attribution-total">
          {seconds(total)}
        </Text>
        {predicted && totalOf(predicted) > 0 && (
          <>
            <Text size="sm" c="dimmed">
              predicted
            </Text>
            <StackBar attribution={predicted} scale_s={scale} />
            <Text size="sm" c="dimmed" ta="right">
              {seconds(totalOf(predicted))}
            </Text>
          </>
        )}
      </div>
      <Legend
        entries={PARTS.filter(({ key }) => measured[key] > 0).map(({ key, label }) => ({
          label,
          color: attributionColors[key],
          value: `${seconds(measured[key])} · ${percent(measured[key] / total)}`,
        }))}
      />
    </Panel>
  );
}
