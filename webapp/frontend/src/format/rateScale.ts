/** Link rates on a logarithmic slider: 100 kbit/s to 10 Gbit/s, two significant digits. */

const LOWEST = 1e5;
const DECADES = 5;
export const SLIDER_MAX = 1000;

export function toSlider(bit_per_s: number): number {
  const position = (Math.log10(Math.max(bit_per_s, LOWEST) / LOWEST) / DECADES) * SLIDER_MAX;
  return Math.round(Math.min(position, SLIDER_MAX));
}

export function fromSlider(position: number): number {
  return Number((LOWEST * 10 ** ((position / SLIDER_MAX) * DECADES)).toPrecision(2));
}

/** Marks below the slider, one per decade. */
export const sliderMarks = ['100k', '1M', '10M', '100M', '1G', '10G'].map((label, decade) => ({
  value: (decade / DECADES) * SLIDER_MAX,
  label,
}));
