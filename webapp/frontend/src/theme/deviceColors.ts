/** One colour per device, by rank: the same in every picture, chart and table, in both colour schemes. None of them
 * is a colour of a kind of span: orange is the network, slate is computing, brown is the disk. */
export const deviceColors = [
  '#12908e',
  '#3f7fc4',
  '#7d62c9',
  '#cc4d68',
  '#629a3a',
  '#b653a4',
  '#27a0bd',
  '#8f8420',
  '#5a5fcf',
  '#2c8a57',
  '#c2577f',
  '#6f9c1f',
] as const;

/** Colour of the device with this rank; repeats after twelve. */
export function deviceColor(rank: number): string {
  return deviceColors[rank % deviceColors.length] ?? deviceColors[0];
}

/** Colour of every device of a cluster, by name. */
export function colorsByName(devices: readonly { name: string }[]): Record<string, string> {
  return Object.fromEntries(devices.map((device, rank) => [device.name, deviceColor(rank)]));
}
