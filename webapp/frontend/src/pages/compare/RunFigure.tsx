import { Alert, Button, Text } from '@mantine/core';
import { IconDownload, IconFlag } from '@tabler/icons-react';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import { AxisControls } from '@/experiment/chart/AxisControls';
import { FigurePanel } from '@/experiment/chart/FigurePanel';
import { cautionLines } from './cautions';
import { csvText, type Comparison } from './comparison';
import { download } from './download';
import { rowsOf } from './figureRows';
import { useHighlight } from './highlight';
import type { RunsFigure, useRunsFigure } from './queries';

interface Props {
  comparison: Comparison;
  answer: ReturnType<typeof useRunsFigure>;
  /** A sentence for each word of the address that is none. */
  unknown: readonly string[];
  onChoose: (choice: Record<string, string>) => void;
}

const HEIGHT_PX = 340;

/** One metric of all runs against a parameter: repeats as one mark with its interval, or as a box. */
export function RunFigure({ comparison, answer, unknown, onChoose }: Props) {
  const { pointed, pinned, point, pin } = useHighlight();
  if (answer.isError) return <ErrorPanel title="No figure" message={sentence(answer.error)} />;
  if (answer.data === null) return null;
  const made = answer.data;
  const spots = made?.figure.panels.flatMap(({ lines }) => lines.flatMap((line) => line.spots)) ?? [];
  const lit = new Set([...pointed, ...pinned].map(String));
  return (
    <FigurePanel
      title="Figure"
      about={made?.caption || undefined}
      data={made?.figure}
      stale={answer.isPlaceholderData}
      selected={new Set(spots.flatMap(({ digests }) => (digests.some((id) => lit.has(id)) ? digests : [])))}
      onSelect={(digests, how) => {
        const ids = digests.map(Number);
        const there = ids.every((id) => pinned.includes(id));
        const others = pinned.filter((id) => !ids.includes(id));
        pin(how === 'toggle' && there ? others : [...others, ...ids]);
      }}
      onHover={(digests) => point(digests.map(Number))}
      repeatsShown
      height={HEIGHT_PX}
      extra={
        made && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconDownload size={14} />}
            onClick={() => download(csvText(rowsOf(made)), 'figure.csv')}
            data-testid="figure-csv"
          >
            CSV
          </Button>
        )
      }
      controls={made && <Controls made={made} onChoose={onChoose} />}
    >
      {made && made.split.length > 0 && (
        <Text size="xs" c="dimmed" data-testid="figure-split">
          {made.split.join(' and ')} {made.split.length > 1 ? 'differ' : 'differs'} too: these runs are no
          repeats, and have series of their own.
        </Text>
      )}
      {made?.missing && (
        <Text size="xs" c="dimmed" data-testid="figure-missing">
          {made.missing}
        </Text>
      )}
      {[...unknown, ...(made?.problems ?? [])].map((problem) => (
        <Text key={problem} size="xs" c="dimmed" data-testid="figure-problem">
          {problem}
        </Text>
      ))}
      <Cautions comparison={comparison} />
    </FigurePanel>
  );
}

/** What the server calls every run by itself, and the metric that single tokens have. */
const RUN = 'run';
const TOKENS = 'token_s';

function Controls({
  made: { view, metrics, parameters },
  onChoose,
}: {
  made: RunsFigure;
  onChoose: (choice: Record<string, string>) => void;
}) {
  const names = parameters.map(({ name, title }) => ({ value: name, label: title }));
  const along = parameters.find(({ name }) => name === view.x);
  const logX = {
    label: 'log x' as const,
    on: view.log_x,
    onSwitch: (on: boolean) => onChoose({ logx: on ? '1' : '0' }),
    testId: 'figure-log-x',
  };
  return (
    <AxisControls
      picks={[
        {
          label: 'Value',
          width: 230,
          value: view.metric,
          choices: metrics.map(({ name, title }) => ({ value: name, label: title })),
          onPick: (y) => onChoose({ y }),
          testId: 'figure-y',
        },
        {
          label: 'Against',
          width: 250,
          value: view.x,
          choices: [...names, { value: RUN, label: 'every run by itself' }],
          onPick: (x) => onChoose({ x }),
          testId: 'figure-x',
        },
        {
          label: 'Colour and shape',
          width: 210,
          value: view.series,
          choices: [{ value: '', label: 'none' }, ...names.filter(({ value }) => value !== view.x)],
          onPick: (hue) => onChoose({ hue }),
          testId: 'figure-hue',
        },
        {
          label: 'Chart',
          width: 106,
          value: view.kind,
          disabled: view.metric === TOKENS,
          choices: [
            { value: 'lines', label: along?.numeric ? 'Lines' : 'Points' },
            { value: 'bars', label: 'Bars' },
            { value: 'boxes', label: 'Boxes' },
          ],
          onPick: (kind) => onChoose({ as: kind }),
          testId: 'figure-kind',
        },
      ]}
      logs={[
        ...(along?.positive && view.kind === 'lines' ? [logX] : []),
        {
          label: 'log y',
          on: view.log_y,
          onSwitch: (on) => onChoose({ logy: on ? '1' : '0' }),
          testId: 'figure-log-y',
        },
      ]}
    />
  );
}

/** Says which runs cannot simply be set against the baseline, and why. */
function Cautions({ comparison: { runs, baseline } }: { comparison: Comparison }) {
  const lines = cautionLines(runs, baseline);
  if (lines.length === 0) return null;
  return (
    <Alert
      color="orange"
      variant="light"
      p="xs"
      mt="xs"
      icon={<IconFlag size={16} />}
      data-testid="figure-cautions"
    >
      {lines.map((line) => (
        <Text key={line} size="xs">
          {line}
        </Text>
      ))}
    </Alert>
  );
}
