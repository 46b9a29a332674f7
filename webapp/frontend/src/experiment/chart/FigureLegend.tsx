import { toggled } from '@/format/groups';
import { seriesColor } from '@/theme/seriesColors';
import classes from './chart.module.css';
import { Crossed, Marker } from './Marker';
import { type FigureData, type Hidden, namesOf, sourcesOf } from './model';

interface Props {
  data: FigureData;
  hidden: Hidden;
  onHidden: (hidden: Hidden) => void;
}

/** Buttons that show or hide a series, or all marks of one source. */
export function FigureLegend({ data, hidden, onHidden }: Props) {
  const present = new Set(data.panels.flatMap((panel) => panel.lines.map(({ label }) => label)));
  const sources = sourcesOf(data);
  const labels = data.series.filter((label) => label !== '' && present.has(label));
  const hasLeftOut = data.panels.some(({ lines }) =>
    lines.some(({ spots }) => spots.some(({ left_out }) => left_out.length > 0)),
  );
  return (
    <div className={classes.legend} data-testid="figure-legend">
      {labels.map((label) => {
        const place = data.series.indexOf(label);
        return (
          <Entry
            key={label}
            label={namesOf(data, label)}
            testId={`legend-${label}`}
            shown={!hidden.labels.has(label)}
            onToggle={() => onHidden({ ...hidden, labels: toggled(hidden.labels, label) })}
          >
            <Marker source="emulated" place={place} color={seriesColor(place)} />
          </Entry>
        );
      })}
      {sources.length > 0 && labels.length > 0 && <span className={classes.divider} />}
      {sources.map((source) => (
        <Entry
          key={source}
          label={source}
          testId={`legend-${source}`}
          shown={!hidden.sources.has(source)}
          onToggle={() => onHidden({ ...hidden, sources: toggled(hidden.sources, source) })}
        >
          <Marker source={source} place={0} color="var(--loom-dim)" />
        </Entry>
      ))}
      {hasLeftOut && (
        <span className={classes.entry}>
          <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden>
            <Crossed color="var(--loom-dim)" />
          </svg>
          not valid, left out
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
