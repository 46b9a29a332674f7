import { Alert, Button, Group, Select, Switch, Text } from '@mantine/core';
import { IconDownload, IconFlag } from '@tabler/icons-react';
import { useMemo } from 'react';
import { FigurePanel } from '@/experiment/chart/FigurePanel';
import { csvText, type ComparedRun } from './comparison';
import { download } from './download';
import { captionOf, figureOf, missingText, rowsOf } from './figure';
import { useHighlight } from './highlight';
import { cautionLines } from './cautions';
import {
  allPositive,
  type Chosen,
  type Compared,
  type Kind,
  NONE,
  RUN,
  TOKENS,
  type View,
  viewOf,
} from './view';

interface Props {
  compared: Compared;
  chosen: Chosen;
  /** A sentence for each word of the address that is none. */
  unknown: readonly string[];
  onChoose: (choice: Chosen) => void;
}

const HEIGHT_PX = 340;

/** One metric of all runs against a parameter: repeats as one mark with its interval, or as a box. */
export function RunFigure({ compared, chosen, unknown, onChoose }: Props) {
  const { comparison } = compared;
  const { view, problems } = useMemo(() => viewOf(compared, chosen), [compared, chosen]);
  const figure = useMemo(() => figureOf(compared, view), [compared, view]);
  const { pointed, pinned, point, pin } = useHighlight();
  const marks = figure.data.facets.flatMap(({ series }) => series.flatMap((one) => one.marks));
  const missing = missingText(marks, view);
  const lit = new Set([...pointed, ...pinned].map(String));
  if (compared.metrics.length === 0 && !compared.hasTokens) return null;
  return (
    <FigurePanel
      title="Figure"
      about={captionOf(view, marks)}
      data={figure.data}
      selected={new Set(marks.flatMap(({ digests }) => (digests.some((id) => lit.has(id)) ? digests : [])))}
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
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<IconDownload size={14} />}
          onClick={() => download(csvText(rowsOf(figure, view, comparison)), 'figure.csv')}
          data-testid="figure-csv"
        >
          CSV
        </Button>
      }
      controls={<Controls compared={compared} view={view} onChoose={onChoose} />}
    >
      {figure.split.length > 0 && (
        <Text size="xs" c="dimmed" data-testid="figure-split">
          {figure.split.map(({ title }) => title).join(' and ')}{' '}
          {figure.split.length > 1 ? 'differ' : 'differs'} too: these runs are no repeats, and have series of
          their own.
        </Text>
      )}
      {missing && (
        <Text size="xs" c="dimmed" data-testid="figure-missing">
          {missing}
        </Text>
      )}
      {[...unknown, ...problems].map((problem) => (
        <Text key={problem} size="xs" c="dimmed" data-testid="figure-problem">
          {problem}
        </Text>
      ))}
      <Cautions runs={comparison.runs} baseline={comparison.baseline} />
    </FigurePanel>
  );
}

function Controls({
  compared: { parameters, metrics, hasTokens },
  view,
  onChoose,
}: {
  compared: Compared;
  view: View;
  onChoose: (choice: Chosen) => void;
}) {
  const names = parameters.map(({ path, title }) => ({ value: path, label: title }));
  const along = parameters.find(({ path }) => path === view.x);
  const positive = along !== undefined && allPositive(along.values);
  return (
    <Group gap={8} align="flex-end" mb="xs">
      <Pick
        label="Value"
        w={230}
        value={view.metric}
        data={[
          ...metrics.map(({ name, title }) => ({ value: name, label: title })),
          ...(hasTokens ? [{ value: TOKENS, label: 'Time of each token after the first' }] : []),
        ]}
        onPick={(metric) => onChoose({ metric })}
        testId="figure-y"
      />
      <Pick
        label="Against"
        w={250}
        value={view.x}
        data={[...names, { value: RUN, label: 'every run by itself' }]}
        onPick={(x) => onChoose({ x })}
        testId="figure-x"
      />
      <Pick
        label="Colour and shape"
        w={210}
        value={view.hue}
        data={[{ value: NONE, label: 'none' }, ...names.filter(({ value }) => value !== view.x)]}
        onPick={(hue) => onChoose({ hue })}
        testId="figure-hue"
      />
      <Pick
        label="As"
        w={106}
        value={view.kind}
        disabled={view.metric === TOKENS}
        data={[
          { value: 'lines', label: along?.isNumeric ? 'Lines' : 'Points' },
          { value: 'bars', label: 'Bars' },
          { value: 'boxes', label: 'Boxes' },
        ]}
        onPick={(kind) => onChoose({ kind: kind as Kind })}
        testId="figure-kind"
      />
      <Group gap={12} h={30}>
        {positive && view.kind === 'lines' && (
          <Switch
            size="xs"
            label="log x"
            checked={view.logX}
            onChange={(event) => onChoose({ logX: event.currentTarget.checked })}
            data-testid="figure-log-x"
          />
        )}
        <Switch
          size="xs"
          label="log y"
          checked={view.logY}
          onChange={(event) => onChoose({ logY: event.currentTarget.checked })}
          data-testid="figure-log-y"
        />
      </Group>
    </Group>
  );
}

interface PickProps {
  label: string;
  w: number;
  value: string;
  data: { value: string; label: string }[];
  disabled?: boolean;
  onPick: (value: string) => void;
  testId: string;
}

function Pick({ label, w, value, data, disabled = false, onPick, testId }: PickProps) {
  return (
    <Select
      size="xs"
      label={label}
      w={w}
      value={value}
      data={data}
      disabled={disabled}
      searchable={data.length > 12}
      allowDeselect={false}
      comboboxProps={{ width: 'max-content', position: 'bottom-start' }}
      onChange={(next) => next !== null && onPick(next)}
      data-testid={testId}
    />
  );
}

/** Which runs cannot simply be set against the baseline, and why. */
function Cautions({ runs, baseline }: { runs: readonly ComparedRun[]; baseline: number }) {
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
