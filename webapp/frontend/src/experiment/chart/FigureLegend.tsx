import { toggled } from '@/format/groups';
import { seriesColor } from '@/theme/seriesColors';
import classes from './chart.module.css';
import { Crossed, Marker } from './Marker';
import type { FigureData, Hidden } from './model';

interface Props {
  data: FigureData;
  hidden: Hidden;
  onHidden: (hidden: Hidden) => void;
}

/** Buttons that show or hide a series, or all marks of one source. */
export function FigureLegend({ data, hidden, onHidden }: Props) {
  const { series, sources, left_out: leftOut } = data.legend;
  return (
    <div className={classes.legend} data-testid="figure-legend">
      {series.map(({ label, name, place }) => (
        <Entry
          key={label}
          label={name}
          testId={`legend-${label}`}
          shown={!hidden.labels.has(label)}
          onToggle={() => onHidden({ ...hidden, labels: toggled(hidden.labels, label) })}
        >
          <Marker mark="filled" place={place} color={seriesColor(place)} />
        </Entry>
      ))}
      {sources.length > 0 && series.length > 0 && <span className={classes.divider} />}
      {sources.map(({ source, mark }) => (
        <Entry
          key={source}
          label={source}
          testId={`legend-${source}`}
          shown={!hidden.sources.has(source)}
          onToggle={() => onHidden({ ...hidden, sources: toggled(hidden.sources, source) })}
        >
          <Marker mark={mark} place={0} color="var(--loom-dim)" />
        </Entry>
      ))}
      {leftOut && (
        <span className={classes.entry}>
          <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden>
            <Crossed color="var(--loom-dim)" />
          </svg>
          {leftOut}
        </span>
      )}
    </div>
  );
}

interface EntryProps {
  label: string;
  testId: string;
  shown: boolean;
  onToggle: () => void;
  children: React.ReactNode;
}

function Entry({ label, testId, shown, onToggle, children }: EntryProps) {
  return (
    <button
      type="button"
      className={classes.entry}
      aria-pressed={shown}
      onClick={onToggle}
      data-testid={testId}
    >
      <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden>
        {children}
      </svg>
      {label}
    </button>
  );
}
