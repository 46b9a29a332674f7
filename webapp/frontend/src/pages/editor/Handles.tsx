import { Handle, Position } from '@xyflow/react';
import classes from './nodes.module.css';

const SIDES = [Position.Top, Position.Right, Position.Bottom, Position.Left];

/** One handle per side. A link may start and end at any of them. */
export function Handles() {
  return SIDES.map((side) => (
    <Handle key={side} id={side} type="source" position={side} className={classes.handle} />
  ));
}
