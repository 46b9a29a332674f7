import { describe, expect, it } from 'vitest';
import { DISK_PRESETS, LINK_PRESETS } from '@/api/fixtures';
import { connect, type Drawing, linkName, updateLinks } from './drawing';
import { star } from './fixtures';
import { setAsymmetric, setDirected, valueOf } from './linkEdits';
import { diskPresetOf, linkPresetOf, setLinkPreset } from './partPresets';

const [ONE, TWO, THREE] = ['device-1--switch-1', 'device-2--switch-1', 'device-3--switch-1'] as const;
const [EVEN, UNEVEN] = LINK_PRESETS;
const link = (drawing: Drawing, name: string) => drawing.spec.links.find((each) => linkName(each) === name)!;
const kind = (drawing: Drawing, name: string) =>
  linkPresetOf(drawing, link(drawing, name), LINK_PRESETS)?.name;

describe('a kind of link', () => {
  it.each(LINK_PRESETS)('$name fills in its values, and the link is then of that kind', (preset) => {
    const before = updateLinks(star(), [ONE], { j_per_byte: 3e-9, reverse_delay_s: 0.5, jitter_s: 0.1 });
    const after = setLinkPreset(before, [ONE, TWO], preset);
    expect([ONE, TWO, THREE].map((name) => kind(after, name))).toEqual([preset.name, preset.name, undefined]);
    expect(link(after, ONE)).toMatchObject({
      bit_per_s: preset.bit_per_s,
      reverse_bit_per_s: preset.reverse_bit_per_s,
      delay_s: preset.delay_s,
      reverse_delay_s: null,
      jitter_s: preset.jitter_s,
      loss_frac: preset.loss_frac,
      reverse_loss_frac: null,
      j_per_byte: 3e-9,
    });
    expect(link(after, THREE)).toBe(link(before, THREE));
  });

  it('has the rate from the device to the switch also where the link was drawn from the switch', () => {
    const drawing = setLinkPreset(
      connect(star(), 'switch-1', 'device-1'),
      ['switch-1--device-1--2'],
      UNEVEN!,
    );
    const drawn = link(drawing, 'switch-1--device-1--2');
    expect([drawn.bit_per_s, drawn.reverse_bit_per_s]).toEqual([
      UNEVEN!.reverse_bit_per_s,
      UNEVEN!.bit_per_s,
    ]);
    expect(kind(drawing, 'switch-1--device-1--2')).toBe(UNEVEN!.name);
  });

  it('is no longer that of a link whose values were edited, and is again when they are set back', () => {
    const set = setLinkPreset(star(), [ONE], EVEN!);
    for (const field of ['bit_per_s', 'delay_s', 'loss_frac'] as const)
      for (const direction of ['both', 'forward', 'backward'] as const) {
        const value = valueOf(link(set, ONE), field, direction);
        const edited = setDirected(set, [ONE], field, direction, value + 0.01);
        expect(kind(edited, ONE)).toBeUndefined();
        expect(kind(setDirected(edited, [ONE], field, direction, value), ONE)).toBe(EVEN!.name);
      }
    expect(kind(updateLinks(set, [ONE], { jitter_s: 0.2 }), ONE)).toBeUndefined();
  });

  it('is that of its values, also where directions have fields of their own with the same values', () => {
    expect(kind(setAsymmetric(setLinkPreset(star(), [ONE], EVEN!), [ONE], true), ONE)).toBe(EVEN!.name);
  });
});

it('a kind of disk is the one that a device names, as long as it reads at its rate', () => {
  const named = { disk: 'microsd-a1', disk_byte_per_s: 45e6 };
  expect(diskPresetOf(named, DISK_PRESETS)?.name).toBe('microsd-a1');
  expect(diskPresetOf({ ...named, disk_byte_per_s: 45e6 + 1 }, DISK_PRESETS)).toBeNull();
  expect(diskPresetOf({ disk_byte_per_s: 45e6 }, DISK_PRESETS), 'another disk of that rate').toBeNull();
});
