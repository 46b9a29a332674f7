/** Spans too narrow to be drawn one by one, as pixels: what they cost to paint depends on the screen alone. */

const NOTHING = 255;
const FAINTEST = 0.2;

/** Has the pixels of the timeline that is being drawn: an image cannot be scaled without a canvas of its own. */
let scratch: HTMLCanvasElement | null = null;

/** One row of pixels per lane: a pixel's opacity is the busy share of its time, its colour that of its newest span. */
export class Crowd {
  private readonly busy: Float32Array;
  private readonly kind: Uint8Array;

  constructor(
    readonly width: number,
    readonly lanes: number,
  ) {
    this.busy = new Float32Array(width * lanes);
    this.kind = new Uint8Array(width * lanes).fill(NOTHING);
  }

  /** A span from pixel `from` to pixel `to` of a lane; of kind number `kind`. */
  add(lane: number, from: number, to: number, kind: number): void {
    const first = Math.max(0, Math.floor(from));
    const last = Math.min(Math.floor(to), this.width - 1);
    for (let column = first; column <= last; column += 1) {
      const begin = column === first ? from : column;
      const end = column + 1 < to ? column + 1 : to;
      this.busy[lane * this.width + column]! += end - begin;
      this.kind[lane * this.width + column] = kind;
    }
  }

  /** Red, green, blue and opacity of every pixel, each from 0 to 255; `colors` has #rrggbb by kind number. */
  pixels(colors: readonly string[]): Uint8ClampedArray<ArrayBuffer> {
    const rgb = colors.map((color) => parseInt(color.slice(1), 16));
    const pixels = new Uint8ClampedArray(4 * this.kind.length);
    this.kind.forEach((kind, at) => {
      if (kind === NOTHING) return;
      const color = rgb[kind]!;
      pixels[4 * at] = color >> 16;
      pixels[4 * at + 1] = (color >> 8) & 255;
      pixels[4 * at + 2] = color & 255;
      pixels[4 * at + 3] = 255 * (FAINTEST + (1 - FAINTEST) * Math.min(1, this.busy[at]!));
    });
    return pixels;
  }

  /** Draws lane `n` from height `topOf(n)` on, `height` pixels high, over the whole width of `ctx`. */
  draw(
    ctx: CanvasRenderingContext2D,
    colors: readonly string[],
    width: number,
    height: number,
    topOf: (lane: number) => number,
  ): void {
    const canvas = (scratch ??= document.createElement('canvas'));
    if (canvas.width !== this.width) canvas.width = this.width;
    if (canvas.height !== this.lanes) canvas.height = this.lanes;
    canvas.getContext('2d')?.putImageData(new ImageData(this.pixels(colors), this.width, this.lanes), 0, 0);
    ctx.imageSmoothingEnabled = false;
    for (let lane = 0; lane < this.lanes; lane += 1)
      ctx.drawImage(canvas, 0, lane, this.width, 1, 0, topOf(lane), width, height);
  }
}
