import classes from './chart.module.css';
import type { XScale, YScale } from './scales';

interface Props {
  x: XScale;
  y: YScale;
  width: number;
  height: number;
  xTitle: string;
  /** null in all but the first panel of a row, whose axis the others share. */
  yTitle: string | null;
  /** Pixels from the axis to its title. */
  left: number;
}

/** Grid lines, ticks with their texts, and the titles of both axes. */
export function Axes({ x, y, width, height, xTitle, yTitle, left }: Props) {
  return (
    <g aria-hidden>
      {y.ticks.map(({ at, text }) => (
        <g key={text} transform={`translate(0 ${at.toFixed(1)})`}>
          <line className={classes.grid} x2={width} />
          <text className={classes.tick} x={-8} dy="0.32em" textAnchor="end">
            {text}
          </text>
        </g>
      ))}
      <line className={classes.axis} y1={height} y2={height} x2={width} />
      {x.ticks.map(({ at, text }) => (
        <g key={text} transform={`translate(${at.toFixed(1)} ${height})`}>
          <line className={classes.axis} y2={4} />
          <text className={classes.tick} y={18} textAnchor="middle">
            {text}
          </text>
        </g>
      ))}
      <text className={classes.title} x={width / 2} y={height + 38} textAnchor="middle">
        {xTitle}
      </text>
      {yTitle && (
        <text
          className={classes.title}
          transform={`translate(${-left + 13} ${height / 2}) rotate(-90)`}
          textAnchor="middle"
        >
          {yTitle}
        </text>
      )}
    </g>
  );
}
