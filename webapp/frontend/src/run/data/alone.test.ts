import { expect, it } from 'vitest';
import type { DeviceSpec } from '@/api/types';
import { aloneText } from './alone';

const device = (name: string) => ({ name, role: 'worker' }) as DeviceSpec;
const first = device('desk');
const spec = { devices: [first, device('shelf'), device('door')] };
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
