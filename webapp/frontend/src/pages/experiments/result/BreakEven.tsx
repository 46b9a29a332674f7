import { Panel } from '@/components/Panel';
import type { FigureAnswer } from '@/experiment/data/answers';
import { labelOf } from '@/experiment/data/design';
import type { Factor } from '@/experiment/data/types';
import classes from './result.module.css';

/** Where one line of the figure crosses another, interpolated between the points by the server. */
export function BreakEven({ figure, factors }: { figure: FigureAnswer; factors: readonly Factor[] }) {
  const crossings = figure.panels.flatMap((panel) => panel.crossings);
  if (crossings.length === 0) return null;
  return (
    <Panel title="Break-even" about="interpolated between the points" testId="break-even">
      <ul className={classes.sentences}>
        {crossings.map(({ text, coordinates }) => {
          const place = Object.entries(coordinates).map(([name, value]) => labelOf(factors, name, value));
          return (
            <li key={`${text} ${place.join()}`}>
              {text}
              {place.length > 0 && <span className={classes.dim}> {place.join(', ')}</span>}
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}
