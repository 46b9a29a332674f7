import { Group, Select, Switch } from '@mantine/core';
import type { Metric } from '@/api/types';
import { coordinateOf, type View } from '@/experiment/data/design';
import type { Factor, FigureSpec } from '@/experiment/data/types';

interface Props {
  factors: readonly Factor[];
  metrics: readonly Metric[];
  view: View;
  /** The figure that is shown: `view` with what follows from the factors. */
  figure: FigureSpec;
  onView: (view: View) => void;
}

const KINDS: { value: FigureSpec['kind']; label: string }[] = [
  { value: 'lines', label: 'Lines' },
  { value: 'bars', label: 'Bars' },
  { value: 'heatmap', label: 'Heat map' },
  { value: 'scatter', label: 'Scatter' },
];

/** Which metric is shown against which factors, and how. */
export function ViewControls({ factors, metrics, view, figure, onView }: Props) {
  const set = (patch: Partial<View>) => onView({ ...view, ...patch });
  const names = factors.map(({ name, title }) => ({ value: name, label: title || name }));
  const optional = [{ value: '', label: 'none' }, ...names];
  const shown = [figure.x, figure.series, figure.facet];
  const fixed = factors.filter(({ name, values }) => values.length > 1 && !shown.includes(name));
  const metricNames = metrics.map(({ name, title }) => ({ value: name, label: title }));
  const x = figure.kind === 'scatter' ? metricNames : names;
  return (
    <Group gap={8} align="flex-end" mb="xs">
      <Pick
        label="Value"
        w={190}
        value={figure.metric}
        data={metricNames}
        onPick={(metric) => set({ metric })}
        testId="view-metric"
      />
      <Pick
        label="Against"
        w={170}
        value={figure.x}
        data={x}
        onPick={(next) => set({ x: next })}
        testId="view-x"
      />
      <Pick
        label="Series"
        w={140}
        value={figure.series}
        data={optional}
        onPick={(series) => set({ series })}
        testId="view-series"
      />
      {factors.length > 2 && (
        <Pick
          label="Panels"
          w={140}
          value={figure.facet}
          data={optional}
          onPick={(facet) => set({ facet })}
          testId="view-facet"
        />
      )}
      <Pick
        label="As"
        w={106}
        value={figure.kind}
        data={KINDS}
        onPick={(kind) =>
          set({
            kind: kind as View['kind'],
            ...(kind === 'scatter' || view.kind === 'scatter' ? { x: null } : {}),
          })
        }
        testId="view-kind"
      />
      {fixed.map(({ name, title, values }) => (
        <Pick
          key={name}
          label={title || name}
          w={120}
          value={String(view.fixed[name] ?? coordinateOf(values[0]!))}
          data={values.map((level) => ({
            value: String(coordinateOf(level)),
            label: level.label ?? String(level.value),
          }))}
          onPick={(text) => {
            const level = values.find((one) => String(coordinateOf(one)) === text);
            if (level) set({ fixed: { ...view.fixed, [name]: coordinateOf(level) } });
          }}
          testId={`view-fixed-${name}`}
        />
      ))}
      <Group gap={12} h={30}>
        <Switch
          size="xs"
          label="log x"
          checked={figure.log_x}
          onChange={(event) => set({ logX: event.currentTarget.checked })}
          data-testid="view-log-x"
        />
        <Switch
          size="xs"
          label="log y"
          checked={figure.log_y}
          onChange={(event) => set({ logY: event.currentTarget.checked })}
          data-testid="view-log-y"
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
  onPick: (value: string) => void;
  testId: string;
}

function Pick({ label, w, value, data, onPick, testId }: PickProps) {
  return (
    <Select
      size="xs"
      label={label}
      w={w}
      value={value}
      data={data}
      allowDeselect={false}
      onChange={(next) => next !== null && onPick(next)}
      data-testid={testId}
    />
  );
}
