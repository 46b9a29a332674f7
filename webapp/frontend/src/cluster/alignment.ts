/** Aligns and distributes nodes. Positions are centres; cards have different sizes. */
import { DEVICE_SIZE, type Point, positionsOf, SWITCH_SIZE } from './autoLayout';
import { type Drawing, move } from './drawing';

export type Edge = 'left' | 'centre' | 'right' | 'top' | 'middle' | 'bottom';
export type Axis = 'x' | 'y';

interface Card extends Point {
  name: string;
  width: number;
  height: number;
}

/** Puts these edges (or middles) of the nodes on one line; the line is the outermost edge, or the mean. */
export function align(drawing: Drawing, names: readonly string[], edge: Edge): Drawing {
  const cards = cardsOf(drawing, names);
  if (cards.length < 2) return drawing;
  const horizontal = edge === 'left' || edge === 'centre' || edge === 'right';
  const [axis, size]: [Axis, 'width' | 'height'] = horizontal ? ['x', 'width'] : ['y', 'height'];
  const side = edge === 'left' || edge === 'top' ? -0.5 : edge === 'right' || edge === 'bottom' ? 0.5 : 0;
  const lines = cards.map((card) => card[axis] + side * card[size]);
  const line =
    side === 0
      ? lines.reduce((sum, value) => sum + value, 0) / lines.length
      : side < 0
        ? Math.min(...lines)
        : Math.max(...lines);
  return placed(drawing, cards, axis, (card) => line - side * card[size]);
}

/** Makes the gaps between neighbouring nodes equal; the outermost two stay. */
export function distribute(drawing: Drawing, names: readonly string[], axis: Axis): Drawing {
  const size = axis === 'x' ? 'width' : 'height';
  const cards = cardsOf(drawing, names).toSorted((a, b) => a[axis] - b[axis]);
  const [first, last] = [cards[0], cards.at(-1)];
  if (cards.length < 3 || !first || !last) return drawing;
  const room = last[axis] - last[size] / 2 - (first[axis] + first[size] / 2);
  const inside = cards.slice(1, -1).reduce((sum, card) => sum + card[size], 0);
  const gap = (room - inside) / (cards.length - 1);
  let at = first[axis] + first[size] / 2;
  const centres = new Map<string, number>();
  for (const card of cards.slice(1, -1)) {
    centres.set(card.name, at + gap + card[size] / 2);
    at += gap + card[size];
  }
  return placed(drawing, cards, axis, (card) => centres.get(card.name) ?? card[axis]);
}

function cardsOf({ spec, layout }: Drawing, names: readonly string[]): Card[] {
  const at = positionsOf(spec, layout);
  const devices = new Set(spec.devices.map((device) => device.name));
  return names.flatMap((name) => {
    const place = at[name];
    return place ? [{ name, ...place, ...(devices.has(name) ? DEVICE_SIZE : SWITCH_SIZE) }] : [];
  });
}

function placed(
  drawing: Drawing,
  cards: readonly Card[],
  axis: Axis,
  centre: (card: Card) => number,
): Drawing {
  const places = cards.map(
    (card) => [card.name, { x: card.x, y: card.y, [axis]: Math.round(centre(card)) }] as const,
  );
  return move(drawing, Object.fromEntries(places));
}
