import { useReactFlow } from '@xyflow/react';
import type { KeyboardEvent, PointerEvent } from 'react';
import type { Point } from '@/cluster/autoLayout';
import { moveBend, removeBend } from '@/cluster/linkEdits';
import { editor, useEditor } from './editorStore';
import classes from './nodes.module.css';

const STEP = 8;
const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-STEP, 0],
  ArrowRight: [STEP, 0],
  ArrowUp: [0, -STEP],
  ArrowDown: [0, STEP],
};

/** The bends of a selected link: drag them or move them with the arrow keys; a double click or Delete removes one. */
export function BendHandles({ name, points }: { name: string; points: readonly Point[] }) {
  const flow = useReactFlow();
  const readOnly = useEditor((state) => state.readOnly);
  if (readOnly) return null;
  const { edit, seal } = editor();
  const moveTo = (index: number, at: Point) =>
    edit((old) => moveBend(old, name, index, at), `bend ${name} ${index}`);
  const onMove = (index: number) => (event: PointerEvent) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    moveTo(index, flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }));
  };
  const onKey = (index: number, at: Point) => (event: KeyboardEvent) => {
    const arrow = ARROWS[event.key];
    const removes = event.key === 'Delete' || event.key === 'Backspace';
    if (!arrow && !removes) return;
    event.preventDefault();
    event.stopPropagation();
    if (arrow) moveTo(index, { x: at.x + arrow[0], y: at.y + arrow[1] });
    else edit((old) => removeBend(old, name, index));
  };
  return points.map((at, index) => (
    <button
      key={index}
      type="button"
      className={`${classes.bend} nodrag nopan`}
      aria-label={`Bend ${index + 1} of ${name}`}
      data-testid={`bend-${name}-${index}`}
      style={{ transform: `translate(-50%, -50%) translate(${at.x}px, ${at.y}px)` }}
      onPointerDown={(event) => {
        event.stopPropagation();
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={onMove(index)}
      onPointerUp={seal}
      onDoubleClick={() => edit((old) => removeBend(old, name, index))}
      onKeyDown={onKey(index, at)}
    />
  ));
}
