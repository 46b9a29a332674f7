/** Copied parts of a drawing as JSON text, which other clusters, tabs and programs can read. */
import type { CanvasLayout, DeviceSpec, LinkSpec } from '@/api/types';
import { type Drawing, emptyDrawing, NAME_PATTERN, NEW_LINK, NO_LAYOUT } from './drawing';
import { linkName } from '@/format/links';

const KIND = 'edgeloom drawing';
const MAX_CHARS = 2_000_000;
const MAX_NODES = 1000;
const MAX_LINKS = 4000;

export function toText({ spec, layout }: Drawing): string {
  const { devices, switches, links, source } = spec;
  return JSON.stringify({ kind: KIND, source, devices, switches, links, layout }, null, 1);
}

/** The drawing that a text holds; null for any other text, and for one with parts that make no sense. */
export function fromText(text: string): Drawing | null {
  if (text.length > MAX_CHARS || !text.includes(KIND)) return null;
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(data) || data['kind'] !== KIND) return null;
  const { devices, switches, links } = data;
  if (!isList(devices, isDevice, MAX_NODES) || !isList(switches, isNamed, MAX_NODES)) return null;
  if (!isList(links, isLink, MAX_LINKS)) return null;
  const nodes = [...devices, ...switches].map((node) => node.name);
  const whole = links.map((link) => ({ ...NEW_LINK, ...link }));
  const ends = whole.every(({ a, b }) => a !== b && nodes.includes(a) && nodes.includes(b));
  const names = [...nodes, ...whole.map(linkName)];
  if (!ends || new Set(names).size < names.length || nodes.length === 0) return null;
  const empty = emptyDrawing('copied');
  const source = devices[0]?.name ?? '';
  return {
    spec: { ...empty.spec, source, devices, switches, links: whole },
    layout: layoutOf(data['layout'], new Set(names)),
  };
}

/** What of a layout makes sense for these nodes and links. */
function layoutOf(value: unknown, names: ReadonlySet<string>): CanvasLayout {
  if (!isRecord(value)) return NO_LAYOUT;
  const entries = (part: unknown) =>
    Object.entries(isRecord(part) ? part : {}).filter(([name]) => names.has(name));
  const positions = entries(value['positions']).filter(([, at]) => isPoint(at));
  const bends = entries(value['bends']).filter(([, points]) => isList(points, isPoint, 20));
  const disabled = Array.isArray(value['disabled']) ? value['disabled'] : [];
  const groups = isList(value['groups'], isGroup, 200) ? value['groups'] : [];
  return {
    positions: Object.fromEntries(positions) as CanvasLayout['positions'],
    bends: Object.fromEntries(bends) as CanvasLayout['bends'],
    disabled: disabled.filter((name) => names.has(name)),
    groups: groups.filter((each) => each.members.every((name) => names.has(name))),
  };
}

type Check<T> = (value: unknown) => value is T;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isList = <T>(value: unknown, check: Check<T>, limit: number): value is T[] =>
  Array.isArray(value) && value.length <= limit && value.every(check);
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isPoint = (value: unknown): value is { x: number; y: number } =>
  isRecord(value) && isNumber(value['x']) && isNumber(value['y']);
const isNamed = (value: unknown): value is { name: string } =>
  isRecord(value) && typeof value['name'] === 'string' && NAME_PATTERN.test(value['name']);
const isGroup = (value: unknown): value is CanvasLayout['groups'][number] =>
  isRecord(value) &&
  typeof value['name'] === 'string' &&
  typeof value['collapsed'] === 'boolean' &&
  isList(value['members'], (name): name is string => typeof name === 'string', MAX_NODES);

/** The fields of a device that the page computes with; the server checks all of them. */
const RATES = ['flop_per_s', 'memory_bytes', 'memory_byte_per_s', 'disk_byte_per_s', 'watts'] as const;

function isDevice(value: unknown): value is DeviceSpec {
  if (!isNamed(value)) return false;
  const fields = value as Record<string, unknown>;
  const lists = ['efficiencies', 'family_rates', 'format_rates'].map((field) => fields[field]);
  return (
    RATES.every((field) => isNumber(fields[field])) &&
    lists.every(Array.isArray) &&
    [fields['title'], fields['source']].every((text) => typeof text === 'string') &&
    (fields['role'] === 'worker' || fields['role'] === 'terminal')
  );
}

function isLink(value: unknown): value is LinkSpec {
  if (!isRecord(value) || !isNumber(value['bit_per_s'])) return false;
  const { a, b, ...numbers } = value;
  return (
    typeof a === 'string' &&
    typeof b === 'string' &&
    Object.values(numbers).every((number) => number === null || isNumber(number))
  );
}
