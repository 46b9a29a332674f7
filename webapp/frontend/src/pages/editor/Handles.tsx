import { Handle, Position } from '@xyflow/react';
import { editor } from './editorStore';
import classes from './nodes.module.css';

const SIDES = [Position.Top, Position.Right, Position.Bottom, Position.Left];

/**
 * One handle per side. A link may start and end at any of them. Those of a selected node can be reached with the Tab
 * key: Enter asks for the other end.
 */
export function Handles({ name, selected }: { name: string; selected: boolean }) {
  return SIDES.map((side) => (
    <Handle
      key={side}
      id={side}
      type="source"
      position={side}
      className={classes.handle}
      tabIndex={selected ? 0 : -1}
      role="button"
      aria-label={`Link ${name} from its ${side}`}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        event.stopPropagation();
        const { select, ask, readOnly } = editor();
        if (readOnly) return;
        select({ nodes: [name], links: [] });
        ask('link');
      }}
    />
  ));
}
