import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, describe, expect, it } from 'vitest';
import { DISK_PRESETS, LINK_PRESETS } from '@/api/fixtures';
import { updateDevices, updateLinks } from '@/cluster/drawing';
import { star } from '@/cluster/fixtures';
import { setLinkPreset } from '@/cluster/partPresets';
import { editor } from './editorStore';
import { DiskKind, LinkKind } from './PartPreset';

const ONE = 'device-1--switch-1';

function html(shown: ReactNode): string {
  const client = new QueryClient();
  client.setQueryData(['catalogue'], { link_presets: LINK_PRESETS, disk_presets: DISK_PRESETS });
  return renderToStaticMarkup(
    <MantineProvider>
      <QueryClientProvider client={client}>{shown}</QueryClientProvider>
    </MantineProvider>,
  );
}

const drawing = () => editor().history.present;
const links = (count: number) =>
  html(<LinkKind links={drawing().spec.links.slice(0, count)} readOnly={false} />);
const disks = (count: number) =>
  html(<DiskKind devices={drawing().spec.devices.slice(0, count)} readOnly={false} />);

beforeEach(() => editor().open({ id: 0, version: 0, drawing: star() }));

describe('the choice of a kind of link', () => {
  it('names the kind that a link has, with its source, until a value is edited', () => {
    expect(links(1)).toContain('values of your own');
    editor().edit((old) => setLinkPreset(old, [ONE], LINK_PRESETS[1]!));
    for (const text of ['value="4G mobile network"', 'measured by many']) expect(links(1)).toContain(text);
    editor().edit((old) => updateLinks(old, [ONE], { jitter_s: 0.007 }));
    expect(links(1)).not.toContain('4G mobile network"');
    expect(links(1)).toContain('values of your own');
  });

  it('says that the kinds of several links differ', () => {
    editor().edit((old) => setLinkPreset(old, [ONE], LINK_PRESETS[0]!));
    expect(links(2)).toContain('different');
    expect(links(2)).not.toContain('measured with iperf3');
  });
});

it('the choice of a kind of disk names the one that the device says, not another of that rate', () => {
  editor().edit((old) => updateDevices(old, ['device-1'], { disk_byte_per_s: 45e6 }));
  expect(disks(1)).toContain('values of your own');
  editor().edit((old) => updateDevices(old, ['device-1'], { disk: 'microsd-a1' }));
  for (const text of ['value="microSD A1"', 'measured with dd']) expect(disks(1)).toContain(text);
  expect(disks(2)).toContain('different');
});
