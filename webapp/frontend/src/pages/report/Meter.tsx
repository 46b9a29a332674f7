import classes from './report.module.css';

/** A bar for a fraction, with its text above. */
export function Meter({ value, color, text }: { value: number; color: string; text: string }) {
  return (
    <div className={classes.meter}>
      <span>{text}</span>
      <div className={classes.bar}>
        <div style={{ width: `${Math.min(Math.max(value, 0), 1) * 100}%`, background: color }} />
      </div>
    </div>
  );
}
