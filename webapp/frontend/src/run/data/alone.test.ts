import { expect, it } from 'vitest';
import { star } from '@/cluster/fixtures';
import { aloneText } from './alone';

const { spec } = star();
const first = spec.devices[0]!;
const plan = (...devices: number[]) => ({
  work: devices.map((device) => ({ device, phase: 'both' as const, slice: {} as never })),
});

it('says where a plan computes that leaves all other workers out', () => {
  expect(aloneText(spec, plan(0, 0))).toBe(`computes on ${first.name} alone`);
  expect(aloneText(spec, plan(0, 1))).toBe('');
  const terminal = { devices: [{ ...first, role: 'terminal' as const }, ...spec.devices.slice(1)] };
  expect(aloneText(terminal, plan(0, 1))).toBe(`computes on ${spec.devices[1]?.name} alone`);
  expect(aloneText({ devices: [first] }, plan(0))).toBe('');
});
