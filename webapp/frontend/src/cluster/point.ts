/** A place on the canvas. */
export interface Point {
  x: number;
  y: number;
}
