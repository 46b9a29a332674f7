import type { Metric } from '@/api/types';
import { AxisControls, type AxisPick } from '@/experiment/chart/AxisControls';
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
  { value: 'boxes', label: 'Boxes' },
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
  const panels: AxisPick = {
    label: 'Panels',
    width: 140,
    value: figure.facet,
    choices: optional,
    onPick: (facet) => set({ facet }),
    testId: 'view-facet',
  };
  return (
    <AxisControls
      picks={[
        {
          label: 'Value',
          width: 190,
          value: figure.metric,
          choices: metricNames,
          onPick: (metric) => set({ metric }),
          testId: 'view-metric',
        },
        {
          label: 'Against',
          width: 170,
          value: figure.x,
          choices: figure.kind === 'scatter' ? metricNames : names,
          onPick: (x) => set({ x }),
          testId: 'view-x',
        },
        {
          label: 'Series',
          width: 140,
          value: figure.series,
          choices: optional,
          onPick: (series) => set({ series }),
          testId: 'view-series',
        },
        ...(factors.length > 2 ? [panels] : []),
        {
          label: 'Chart',
          width: 106,
          value: figure.kind,
          choices: KINDS,
          onPick: (kind) =>
            set({
              kind: kind as View['kind'],
              ...(kind === 'scatter' || view.kind === 'scatter' ? { x: null } : {}),
            }),
          testId: 'view-kind',
        },
        ...fixed.map(({ name, title, values }): AxisPick => ({
          label: title || name,
          width: 120,
          value: String(view.fixed[name] ?? coordinateOf(values[0]!)),
          choices: values.map((level) => ({
            value: String(coordinateOf(level)),
            label: level.label ?? String(level.value),
          })),
          onPick: (text) => {
            const level = values.find((one) => String(coordinateOf(one)) === text);
            if (level) set({ fixed: { ...view.fixed, [name]: coordinateOf(level) } });
          },
          testId: `view-fixed-${name}`,
        })),
      ]}
      logs={[
        { label: 'log x', on: figure.log_x, onSwitch: (logX) => set({ logX }), testId: 'view-log-x' },
        { label: 'log y', on: figure.log_y, onSwitch: (logY) => set({ logY }), testId: 'view-log-y' },
      ]}
    />
  );
}
