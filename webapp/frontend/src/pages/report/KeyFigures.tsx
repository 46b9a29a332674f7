import { Card, Text } from '@mantine/core';
import { useMetrics } from '@/api/queries';
import type { Metric, Predictions, RunDetail } from '@/api/types';
import { metricText } from '@/format/metrics';
import { seconds } from '@/format/units';
import { nameOf } from './predictions';
import classes from './report.module.css';

/** The first figures of a run, each with its predictions. */
export function KeyFigures({ run }: { run: RunDetail }) {
  const metrics = useMetrics();
  const { report, figures } = run;
  if (!report) return null;
  const isOnBoards = (report.pairs ?? []).length > 0;
  const isSame =
    !isOnBoards && JSON.stringify(report.scenario.changes) === JSON.stringify(report.spec.scenario.changes);
  return (
    <div className={classes.figures}>
      {metrics.map((metric) => {
        const value = figures[metric.name];
        if (value === undefined || !metric.shown.includes('report')) return null;
        return (
          <Figure
            key={metric.name}
            metric={metric}
            value={value}
            predictions={report.predictions}
            isSame={isSame}
            knownAs={isSame ? 'predicted' : isOnBoards ? ON_BOARDS : nameOf('with_all_changes_known')}
          />
        );
      })}
    </div>
  );
}

/** The prediction of the drawn cluster with what was measured in place of what is drawn. */
const ON_BOARDS = 'predicted with the measured links';

interface FigureProps {
  metric: Metric;
  value: number;
  predictions: Predictions;
  /** Whether the cluster was as drawn but for the scenario, so that one prediction says it all. */
  isSame: boolean;
  /** What the prediction that knows all is called. */
  knownAs: string;
}

function Figure({ metric: { name, title, about, unit }, value, predictions, isSame, knownAs }: FigureProps) {
  const newest = predictions.from_here_on.at(-1);
  const before = isSame ? undefined : figureIn(predictions.before_the_start, name);
  const known = figureIn(predictions.with_all_changes_known, name);
  return (
    <Card padding="md" title={about}>
      <Text size="xs" c="dimmed">
        {title}
      </Text>
      <Text fz={26} fw={600} lh={1.3} data-testid={`figure-${name}`}>
        {metricText(value, unit)}
      </Text>
      {before !== undefined && (
        <Text size="xs" c="dimmed" data-testid={`before-${name}`}>
          {nameOf('before_the_start')} <span className={classes.strong}>{metricText(before, unit)}</span>
        </Text>
      )}
      {newest && name === 'latency_s' && (
        <Text size="xs" c="dimmed" data-testid="rest-latency_s">
          {nameOf('from_here_on')}, at {seconds(newest.at_s)}{' '}
          <span className={classes.strong}>{seconds(newest.latency_s)}</span>
        </Text>
      )}
      {known !== undefined && (
        <Text size="xs" c="dimmed">
          {knownAs}{' '}
          <span data-testid={`predicted-${name}`} className={classes.strong}>
            {metricText(known, unit)}
          </span>
          {known > 0 && <span data-testid={`error-${name}`}>, {errorText(value, known)}</span>}
        </Text>
      )}
    </Card>
  );
}

/** What a prediction says of a figure; undefined of those that are not predicted. */
function figureIn(prediction: object | null, name: string): number | undefined {
  const found: unknown = prediction && Object.entries(prediction).find(([key]) => key === name)?.[1];
  return typeof found === 'number' ? found : undefined;
}

/** The difference of the measured value from the predicted one, in words. */
function errorText(measured: number, predicted: number): string {
  const error = ((measured - predicted) / predicted) * 100;
  if (Math.abs(error) < 0.05) return 'measured equal';
  return `measured ${Math.abs(error) < 10 ? Math.abs(error).toFixed(1) : Math.abs(error).toFixed(0)} % ${error > 0 ? 'above' : 'below'}`;
}
