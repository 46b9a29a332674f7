/**
 * Kinds of links and disks: what they fill in, and of which kind something is. A link's kind is told by its
 * values, a disk's by its name; what was edited by hand is of none.
 */
import type { DeviceSpec, DiskPreset, LinkPreset, LinkSpec } from '@/api/types';
import { linkName } from '@/format/links';
import { type Drawing, withSpec } from './drawing';

/** The values of a link of this kind; `down` if it leads from the network to the device. */
function valuesOf(preset: LinkPreset, down: boolean) {
  const [up, back] = [preset.bit_per_s, preset.reverse_bit_per_s];
  const even = back === null || back === up;
  return {
    bit_per_s: down && !even ? back : up,
    reverse_bit_per_s: even ? null : down ? up : back,
    delay_s: preset.delay_s,
    reverse_delay_s: null,
    loss_frac: preset.loss_frac,
    reverse_loss_frac: null,
    jitter_s: preset.jitter_s,
  };
}

/** Whether a link leads down: from a switch to a device it does; between others the first end counts as the device. */
const isDown = ({ spec }: Drawing, link: LinkSpec) => {
  const isSwitch = (end: string) => spec.switches.some(({ name }) => name === end);
  return isSwitch(link.a) && !isSwitch(link.b);
};

/** Gives these links the values of a kind, as one step; their energy stays. */
export function setLinkPreset(drawing: Drawing, names: readonly string[], preset: LinkPreset): Drawing {
  const change = (link: LinkSpec): LinkSpec =>
    names.includes(linkName(link)) ? { ...link, ...valuesOf(preset, isDown(drawing, link)) } : link;
  return withSpec(drawing, { links: drawing.spec.links.map(change) });
}

/** The kind whose values a link has; null if it has no kind's. */
export function linkPresetOf(
  drawing: Drawing,
  link: LinkSpec,
  presets: readonly LinkPreset[],
): LinkPreset | null {
  const has = (preset: LinkPreset) => {
    const values = valuesOf(preset, isDown(drawing, link));
    return (
      values.bit_per_s === link.bit_per_s &&
      (values.reverse_bit_per_s ?? values.bit_per_s) === (link.reverse_bit_per_s ?? link.bit_per_s) &&
      values.delay_s === link.delay_s &&
      values.delay_s === (link.reverse_delay_s ?? link.delay_s) &&
      values.loss_frac === link.loss_frac &&
      values.loss_frac === (link.reverse_loss_frac ?? link.loss_frac) &&
      values.jitter_s === link.jitter_s
    );
  };
  return presets.find(has) ?? null;
}

/** The kind that a device says its disk is; null if it says none, or reads at another rate than that kind. */
export const diskPresetOf = (
  { disk, disk_byte_per_s }: Pick<DeviceSpec, 'disk' | 'disk_byte_per_s'>,
  presets: readonly DiskPreset[],
): DiskPreset | null =>
  presets.find((preset) => preset.name === disk && preset.byte_per_s === disk_byte_per_s) ?? null;
