import { Panel } from '@/components/Panel';
import type { BreakEvenAnswer } from '@/experiment/data/answers';
import classes from './result.module.css';

/** Where one method overtakes another, interpolated between the points by the server. */
export function BreakEven({ lines }: { lines: readonly BreakEvenAnswer[] }) {
  if (lines.length === 0) return null;
  return (
    <Panel title="Break-even" about="interpolated between the points" testId="break-even">
      <ul className={classes.sentences}>
        {lines.map(({ text }) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </Panel>
  );
}
