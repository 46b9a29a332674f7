import { Anchor, Card, Group, Loader, Skeleton, Text } from '@mantine/core';
import { ApiError, sentence } from '@/api/client';
import type { PredictResult, RunReport } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { between, perToken, seconds, three } from '@/format/units';
import { aloneText } from '@/run/data/alone';
import { PARTS, StackBar, totalOf } from '@/run/charts/StackBar';
import { Legend } from '@/components/Legend';
import { attributionColors } from '@/theme/spanColors';
import { MemoryBars } from './MemoryBars';
import classes from './newRun.module.css';
import { showSection } from './Section';

interface Props {
  data: PredictResult | undefined;
  error: Error | null;
  waiting: boolean;
  /** What the draft lacks before a prediction is possible. */
  missing: string | null;
  /** The section of the form that says why the run is refused; null if none does. */
  refused: string | null;
  onRetry: () => void;
}

/** The prediction of the run: figures, time by cause, peak memory. */
export function PredictionPanel({ data, error, waiting, missing, refused, onRetry }: Props) {
  const report = data?.report;
  return (
    <Card
      padding="md"
      data-testid="prediction"
      data-state={missing ? 'missing' : waiting ? 'waiting' : error ? 'error' : 'ready'}
    >
      <Group justify="space-between" mb="sm" h={22}>
        <span className="overline">Predicted</span>
        {waiting && <Loader size="xs" />}
      </Group>
      {missing ? (
        <Text size="sm" c="dimmed">
          {missing}
        </Text>
      ) : error && !waiting && refused ? (
        <Text size="sm">
          This run cannot be predicted or started:{' '}
          <Anchor
            component="button"
            size="sm"
            onClick={() => showSection(refused)}
            data-testid="show-refusal"
          >
            see the reason under {refused}
          </Anchor>
          .
        </Text>
      ) : error && !waiting ? (
        <ErrorPanel message={sentence(error)} onRetry={isRefusal(error) ? undefined : onRetry} />
      ) : report ? (
        <div className={waiting ? classes.stale : undefined}>
          <Prediction report={report} />
        </div>
      ) : (
        <Skeleton height={220} />
      )}
    </Card>
  );
}

/** The same request would be refused again. */
function isRefusal(error: Error): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500;
}

function Prediction({ report }: { report: RunReport }) {
  const total = totalOf(report.attribution);
  const shown = PARTS.filter(({ key }) => report.attribution[key] > 0);
  const generates = report.spec.workload.new_tokens > 0;
  const alone = aloneText(report.spec.cluster, report.plan);
  return (
    <>
      {alone && (
        <Text size="sm" mb="sm" data-testid="predicted-alone">
          {report.spec.strategy} {alone}: no other device takes part.
        </Text>
      )}
      {report.outcome.kind === 'finished' ? (
        <>
          <div className={classes.figures}>
            <Figure
              label={generates ? 'First token (TTFT)' : 'First result'}
              value={seconds(report.ttft_s)}
              testId="predicted-ttft"
            />
            <Figure label="Per token (TPOT)" value={perToken(report.tpot_s)} testId="predicted-tpot" />
            <Figure label="End to end" value={seconds(report.latency_s)} testId="predicted-latency" />
            <Figure
              label="Throughput"
              value={generates ? `${three(report.tokens_per_s)} tokens/s` : '–'}
              testId="predicted-tokens-per-s"
            />
          </div>
          {report.uncertainty && (
            <Text size="xs" c="dimmed" mt="sm" data-testid="predicted-uncertainty">
              Real boards:{' '}
              {report.uncertainty.latency_s && `${between(...report.uncertainty.latency_s, seconds)}; `}
              {report.uncertainty.basis}.
            </Text>
          )}
          {report.fidelity.notes.map((note) => (
            <Text key={note} size="xs" c="dimmed" mt="sm" data-testid="predicted-note">
              {note}
            </Text>
          ))}
          {total > 0 && (
            <>
              <Text size="xs" c="dimmed" mt="md" mb={5}>
                Where the time goes, along the critical path
              </Text>
              <StackBar attribution={report.attribution} scale_s={total} />
              <div style={{ height: 6 }} />
              <Legend
                entries={shown.map(({ key, label }) => ({
                  label,
                  color: attributionColors[key],
                  value: seconds(report.attribution[key]),
                }))}
              />
            </>
          )}
        </>
      ) : (
        <ErrorPanel title="This run would not finish" message={report.outcome.sentence} />
      )}
      <Text size="xs" c="dimmed" mt="md" mb={7}>
        Peak memory of each device
      </Text>
      <MemoryBars devices={report.devices} />
    </>
  );
}

function Figure({ label, value, testId }: { label: string; value: string; testId: string }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <div className={classes.figure} data-testid={testId}>
        {value}
      </div>
    </div>
  );
}
