import classes from './reproductions.module.css';
import { colorOf, type State } from './verdicts';

/** The state of a published figure with its colour; `repeats` is the figure that it follows from by arithmetic. */
export function StateKey({ state, repeats = '' }: { state: State; repeats?: string }) {
  return (
    <span className={classes.key} title={repeats ? `It repeats ${repeats}.` : undefined}>
      <span style={{ background: colorOf(state) }} />
      {state}
      {repeats && ', repeats'}
    </span>
  );
}
