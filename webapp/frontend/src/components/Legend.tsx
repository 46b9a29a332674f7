import classes from './Legend.module.css';

interface Props {
  entries: { label: string; color: string; value?: string }[];
}

/** The legend of a chart: colour squares with labels. */
export function Legend({ entries }: Props) {
  return (
    <div className={classes.legend}>
      {entries.map(({ label, color, value }) => (
        <span key={label} className={classes.legendEntry}>
          <span className={classes.swatch} style={{ background: color }} />
          {label}
          {value && <span className={classes.legendValue}>{value}</span>}
        </span>
      ))}
    </div>
  );
}
