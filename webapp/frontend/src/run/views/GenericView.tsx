import type { ReactNode } from 'react';
import type { DeviceSpec } from '@/api/types';
import { Panel } from '@/components/Panel';
import { namedQuantity } from '@/run/data/marks';
import { nameOf, type ViewProps } from './props';
import classes from './views.module.css';

/** At most this many rows of a list are shown. */
const MAX_ROWS = 200;
/** Keys whose whole numbers are ranks of devices. */
const RANKS = /(^|_)(rank|device|owner|member|primary|source)s?$/;

/** A method without a view of its own: what its layout says, and then what its report says. */
export function GenericView({ layout, devices, data }: ViewProps) {
  const report = data?.report?.method;
  return (
    <Panel title="Method" testId="view-generic" about={`what the plan says (${layout.kind})`}>
      <Fields of={layout} devices={devices} />
      {report && (
        <>
          <div className={classes.note}>What the run’s report says</div>
          <Fields of={report} devices={devices} />
        </>
      )}
    </Panel>
  );
}

function Fields({ of, devices }: { of: object; devices: readonly DeviceSpec[] }) {
  const fields = Object.entries(of).filter(([key]) => key !== 'kind');
  return (
    <div
      className={classes.grid}
      style={{ gridTemplateColumns: 'max-content minmax(0, 1fr)', alignItems: 'baseline' }}
    >
      {fields.map(([key, value]) => {
        const [name, text] = wordsOf(key, value, devices);
        return (
          <div key={key} style={{ display: 'contents' }} data-testid={`generic-${key}`}>
            <span className={classes.dim}>{name}</span>
            <span style={{ fontSize: 13 }}>{text}</span>
          </div>
        );
      })}
    </div>
  );
}

/** The name of a field and its value: a quantity, a list of them, or a table of the objects in a list. */
function wordsOf(key: string, value: unknown, devices: readonly DeviceSpec[]): [string, ReactNode] {
  if (value === null || value === undefined) return [namedQuantity(key, '')[0], '–'];
  if (RANKS.test(key) && Number.isInteger(value))
    return [namedQuantity(key, '')[0], nameOf(devices, Number(value))];
  if (!isObject(value)) return namedQuantity(key, value);
  if (!Array.isArray(value))
    return [namedQuantity(key, '')[0], <Fields key={key} of={value} devices={devices} />];
  const name =
    value.length > 0 && !isObject(value[0]) ? wordsOf(key, value[0], devices)[0] : key.replaceAll('_', ' ');
  if (value.length === 0) return [name, 'none'];
  if (value.every((one) => isObject(one) && !Array.isArray(one)))
    return [name, <Rows key={key} of={value as object[]} devices={devices} />];
  const texts = value.map((one) =>
    Array.isArray(one) ? one.flat(Infinity).join(', ') : wordsOf(key, one, devices)[1],
  );
  return [name, texts.join(value.some(Array.isArray) ? '; ' : ', ')];
}

function Rows({ of, devices }: { of: readonly object[]; devices: readonly DeviceSpec[] }) {
  const keys = [...new Set(of.flatMap(Object.keys))];
  const shown = of.slice(0, MAX_ROWS);
  return (
    <div className={classes.scroll}>
      <table className={classes.rows}>
        <thead>
          <tr>
            {keys.map((key) => (
              <th key={key}>{wordsOf(key, valueOf(of[0], key), devices)[0]}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, at) => (
            <tr key={at}>
              {keys.map((key) => (
                <td key={key}>{wordsOf(key, valueOf(row, key), devices)[1]}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {of.length > shown.length && <span className={classes.dim}>and {of.length - shown.length} more</span>}
    </div>
  );
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const valueOf = (row: object | undefined, key: string): unknown =>
  (row as Record<string, unknown> | undefined)?.[key];
