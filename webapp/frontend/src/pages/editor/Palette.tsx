import { Group, NumberInput, ScrollArea, Stack, Text, TextInput } from '@mantine/core';
import { IconArrowsShuffle, IconDeviceDesktop, IconSearch } from '@tabler/icons-react';
import { useReactFlow } from '@xyflow/react';
import { type DragEvent, useState } from 'react';
import { useCatalogue } from '@/api/queries';
import type { DevicePreset } from '@/api/types';
import { bytes, flopRate } from '@/format/units';
import { type Add, addAround } from '@/cluster/additions';
import { addDevice, addSwitch } from '@/cluster/drawing';
import classes from './editor.module.css';
import { editor } from './editorStore';

/** The data of a dragged palette item: how many, a space, and a preset's name or that it is a switch. */
export const PALETTE_TYPE = 'application/x-edgeloom-item';
export const SWITCH_ITEM = '(switch)';
const MAX_AT_ONCE = 64;

/** The palette: device presets and a switch, to drag onto the canvas or to press. */
export function Palette() {
  const presets = useCatalogue().data?.presets ?? [];
  const [filter, setFilter] = useState('');
  const [count, setCount] = useState(1);
  const add = useAddInView();
  const words = filter.toLowerCase();
  const shown = presets.filter((preset) => `${preset.name} ${preset.title}`.toLowerCase().includes(words));
  const showsSwitch = 'switch'.startsWith(words);
  const addSwitches = () => add(count, (drawing, at) => addSwitch(drawing, at));
  return (
    <aside className={classes.palette} aria-label="What can be added">
      <div className={classes.panelHead}>
        <span className="overline">Add</span>
        <Group gap={6} wrap="nowrap">
          <TextInput
            flex={1}
            size="xs"
            placeholder="Device or switch"
            aria-label="Find a device or switch"
            leftSection={<IconSearch size={14} />}
            value={filter}
            onChange={(event) => setFilter(event.currentTarget.value)}
            onKeyDown={(event) => {
              const [first] = shown;
              if (event.key === 'Enter' && filter) {
                if (showsSwitch) addSwitches();
                else if (first) add(count, (drawing, at) => addDevice(drawing, first, at));
              }
              if (event.key === 'Escape') event.currentTarget.blur();
            }}
            data-testid="palette-filter"
          />
          <NumberInput
            w={64}
            size="xs"
            aria-label="How many at once"
            title="How many at once"
            prefix="× "
            min={1}
            max={MAX_AT_ONCE}
            allowDecimal={false}
            value={count}
            onChange={(value) =>
              typeof value === 'number' && setCount(Math.min(MAX_AT_ONCE, Math.max(1, value)))
            }
            data-testid="palette-count"
          />
        </Group>
      </div>
      <ScrollArea flex={1} type="auto" scrollbarSize={6}>
        <Stack gap={6} p="sm" pt={0}>
          {showsSwitch && (
            <button
              type="button"
              className={classes.item}
              draggable
              onDragStart={(event) => carry(event, SWITCH_ITEM, count)}
              onClick={addSwitches}
              data-testid="palette-switch"
            >
              <IconArrowsShuffle size={16} />{' '}
              <span>
                <b>Switch</b>
                <small>joins links</small>
              </span>
            </button>
          )}
          {shown.map((preset) => (
            <PresetItem
              key={preset.name}
              preset={preset}
              count={count}
              onAdd={() => add(count, (drawing, at) => addDevice(drawing, preset, at))}
            />
          ))}
          {shown.length === 0 && !showsSwitch && presets.length > 0 && (
            <Text size="xs" c="dimmed">
              Nothing here is called “{filter}”.
            </Text>
          )}
        </Stack>
      </ScrollArea>
      <Text size="xs" c="dimmed" className={classes.hint}>
        Drag onto the canvas, or press to add. Pull a link from the dots at a node’s border, or press L. All
        shortcuts: ?
      </Text>
    </aside>
  );
}

interface ItemProps {
  preset: DevicePreset;
  /** How many are added at once. */
  count: number;
  onAdd: () => void;
}

function PresetItem({ preset, count, onAdd }: ItemProps) {
  return (
    <button
      type="button"
      className={classes.item}
      draggable
      onDragStart={(event) => carry(event, preset.name, count)}
      onClick={onAdd}
      title={[
        preset.assumed_efficiency
          ? `${Math.round(preset.assumed_efficiency * 100)} % of the peak assumed.`
          : '',
        preset.source,
        preset.price_source ? `· Price: ${preset.price_source}` : '',
      ]
        .join(' ')
        .trim()}
      data-testid={`palette-${preset.name}`}
    >
      <IconDeviceDesktop size={16} />
      <span>
        <b>{preset.title || preset.name}</b>
        <small>
          {flopRate(preset.flop_per_s)} · {bytes(preset.memory_bytes)}
          {preset.watts > 0 && ` · ${preset.watts} W`}
          {preset.price_usd != null && ` · $${preset.price_usd}`}
          {preset.basis && ` · ${preset.basis}`}
        </small>
      </span>
    </button>
  );
}

function carry(event: DragEvent, item: string, count: number) {
  event.dataTransfer.setData(PALETTE_TYPE, `${count} ${item}`);
  event.dataTransfer.effectAllowed = 'copy';
}

/** Adds nodes in the middle of the visible canvas, beside nodes that are there, as one step to undo. */
function useAddInView() {
  const flow = useReactFlow();
  return (count: number, add: Add) => {
    const canvas = document.querySelector('.react-flow')?.getBoundingClientRect();
    const middle = flow.screenToFlowPosition({
      x: (canvas?.left ?? 0) + (canvas?.width ?? 0) / 2,
      y: (canvas?.top ?? 0) + (canvas?.height ?? 0) / 2,
    });
    const { drawing, names } = addAround(editor().history.present, middle, count, add);
    editor().edit(() => drawing);
    editor().select({ nodes: names, links: [] });
  };
}
