/** One colour per device, by rank: the same in every picture, chart and table, in both colour schemes. */
export const deviceColors = [
  '#12908e',
  '#d98a1f',
  '#7d62c9',
  '#cc4d68',
  '#3f7fc4',
  '#629a3a',
  '#a3704a',
  '#b653a4',
  '#6b7c93',
  '#989022',
  '#27a0bd',
  '#d8643c',
] as const;

/** Colour of the device with this rank; repeats after twelve. */
export function deviceColor(rank: number): string {
  return deviceColors[rank % deviceColors.length] ?? deviceColors[0];
}

/** Colour of every device of a cluster, by name. */
export function colorsByName(devices: readonly { name: string }[]): Record<string, string> {
  return Object.fromEntries(devices.map((device, rank) => [device.name, deviceColor(rank)]));
}
