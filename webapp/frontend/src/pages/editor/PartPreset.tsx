import { Select, Text } from '@mantine/core';
import type { DeviceSpec, DiskPreset, LinkPreset, LinkSpec } from '@/api/types';
import { useCatalogue } from '@/api/queries';
import { updateDevices } from '@/cluster/drawing';
import { diskPresetOf, linkPresetOf, setLinkPreset } from '@/cluster/partPresets';
import { linkName } from '@/format/links';
import { editor, useDrawing } from './editorStore';

interface KindProps<Preset> {
  label: string;
  presets: readonly Preset[];
  /** The kind of each of the things that are selected; null of one that has no kind's values. */
  kinds: readonly (Preset | null)[];
  readOnly: boolean;
  onChoose: (preset: Preset) => void;
  testId: string;
}

/** A choice of a kind, which fills in values, with the source of the kind's values below it. */
function Kind<Preset extends LinkPreset | DiskPreset>(props: KindProps<Preset>) {
  const { label, presets, kinds, readOnly, onChoose, testId } = props;
  const [first = null] = kinds;
  const same = kinds.every((kind) => kind === first);
  if (presets.length === 0) return null;
  return (
    <div>
      <Select
        label={label}
        size="xs"
        searchable
        disabled={readOnly}
        placeholder={same ? 'values of your own' : 'different'}
        nothingFoundMessage="No such kind"
        value={same ? (first?.name ?? null) : null}
        onChange={(name) => {
          const chosen = presets.find((preset) => preset.name === name);
          if (chosen) onChoose(chosen);
        }}
        data={presets.map(({ name, title }) => ({ value: name, label: title }))}
        data-testid={testId}
      />
      {same && first && (
        <Text size="xs" c="dimmed" mt={4} data-testid={`${testId}-source`}>
          {first.source}
        </Text>
      )}
    </div>
  );
}

export function LinkKind({ links, readOnly }: { links: LinkSpec[]; readOnly: boolean }) {
  const drawing = useDrawing();
  const presets = useCatalogue().data?.link_presets ?? [];
  const names = links.map(linkName);
  return (
    <Kind
      label="Kind of link"
      presets={presets}
      kinds={links.map((link) => linkPresetOf(drawing, link, presets))}
      readOnly={readOnly}
      onChoose={(preset) => editor().edit((old) => setLinkPreset(old, names, preset))}
      testId="link-preset"
    />
  );
}

export function DiskKind({ devices, readOnly }: { devices: DeviceSpec[]; readOnly: boolean }) {
  const presets = useCatalogue().data?.disk_presets ?? [];
  const names = devices.map(({ name }) => name);
  return (
    <Kind
      label="Kind of disk"
      presets={presets}
      kinds={devices.map((device) => diskPresetOf(device, presets))}
      readOnly={readOnly}
      onChoose={({ name, byte_per_s }) =>
        editor().edit((old) => updateDevices(old, names, { disk: name, disk_byte_per_s: byte_per_s }))
      }
      testId="disk-preset"
    />
  );
}
