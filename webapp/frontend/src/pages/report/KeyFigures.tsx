import { Card, Text } from '@mantine/core';
import type { RunReport } from '@/api/types';
import { human, joules, perToken, seconds, three } from '@/format/units';
import { nameOf } from './predictions';
import classes from './report.module.css';

interface Figure {
  id: 'latency_s' | 'ttft_s' | 'tpot_s' | 'tokens_per_s';
  title: string;
  about: string;
  format: (value: number) => string;
}

const FIGURES: Figure[] = [
  {
    id: 'latency_s',
    title: 'End-to-end latency',
    about: 'from the first request to the last token',
    format: seconds,
  },
  { id: 'ttft_s', title: 'Time to first token', about: 'TTFT: the prefill', format: seconds },
  { id: 'tpot_s', title: 'Time per output token', about: 'TPOT: one decode step', format: perToken },
  {
    id: 'tokens_per_s',
    title: 'Throughput',
    about: 'generated tokens per virtual second',
    format: (value) => `${three(value)} /s`,
  },
];

/** The key figures of a run, each with its predictions; energy if devices have a power. */
export function KeyFigures({ report }: { report: RunReport }) {
  const { before_the_start, from_here_on, with_all_changes_known: known } = report.predictions;
  const isSame = JSON.stringify(report.scenario.changes) === JSON.stringify(report.spec.scenario.changes);
  const before = isSame ? null : before_the_start;
  const newest = from_here_on.at(-1);
  const generates = report.spec.workload.new_tokens > 0;
  const shown = FIGURES.filter((figure) => generates || figure.id === 'latency_s' || figure.id === 'ttft_s');
  return (
    <div className={classes.figures}>
      {shown.map(({ id, title, about, format }) => {
        const predicted = known?.[id];
        return (
          <Card key={id} padding="md" title={about}>
            <Text size="xs" c="dimmed">
              {title}
            </Text>
            <Text fz={26} fw={600} lh={1.3} data-testid={`figure-${id}`}>
              {format(report[id])}
            </Text>
            {before && (
              <Text size="xs" c="dimmed" data-testid={`before-${id}`}>
                {nameOf('before_the_start')} <span className={classes.strong}>{format(before[id])}</span>
              </Text>
            )}
            {newest && id === 'latency_s' && (
              <Text size="xs" c="dimmed" data-testid="rest-latency_s">
                {nameOf('from_here_on')}, at {seconds(newest.at_s)}{' '}
                <span className={classes.strong}>{format(newest.latency_s)}</span>
              </Text>
            )}
            {predicted !== undefined && (
              <Text size="xs" c="dimmed">
                {isSame ? 'predicted' : nameOf('with_all_changes_known')}{' '}
                <span data-testid={`predicted-${id}`} className={classes.strong}>
                  {format(predicted)}
                </span>
                {predicted > 0 && (
                  <span data-testid={`error-${id}`}>, {errorText(report[id], predicted)}</span>
                )}
              </Text>
            )}
          </Card>
        );
      })}
      {report.energy_j > 0 && (
        <Card padding="md" title="of devices while they compute and move weights, and of links">
          <Text size="xs" c="dimmed">
            Energy
          </Text>
          <Text fz={26} fw={600} lh={1.3} data-testid="figure-energy_j">
            {joules(report.energy_j)}
          </Text>
          <Text size="xs" c="dimmed">
            energy-delay product <span className={classes.strong}>{human(report.edp_j_s, 'J s')}</span>
          </Text>
        </Card>
      )}
    </div>
  );
}

/** The difference of the measured value from the predicted one, in words. */
function errorText(measured: number, predicted: number): string {
  const error = ((measured - predicted) / predicted) * 100;
  if (Math.abs(error) < 0.05) return 'measured equal';
  return `measured ${Math.abs(error) < 10 ? Math.abs(error).toFixed(1) : Math.abs(error).toFixed(0)} % ${error > 0 ? 'above' : 'below'}`;
}
