import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, expect, it } from 'vitest';
import { DISK_PRESETS, LINK_PRESETS } from '@/api/fixtures';
import { updateDevices } from '@/cluster/drawing';
import { star } from '@/cluster/fixtures';
import { DevicePanel } from './DevicePanel';
import { editor } from './editorStore';

/** The input of what the operating system keeps, of the first `count` devices. */
function reservedInput(count: number): string {
  const client = new QueryClient();
  client.setQueryData(['catalogue'], { link_presets: LINK_PRESETS, disk_presets: DISK_PRESETS });
  const devices = editor().history.present.spec.devices.slice(0, count);
  const html = renderToStaticMarkup(
    <MantineProvider>
      <QueryClientProvider client={client}>
        <DevicePanel devices={devices} readOnly={false} errors={{}} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return /<input[^>]*data-testid="device-reserved_bytes"[^>]*>/.exec(html)?.[0] ?? html;
}

beforeEach(() => editor().open({ id: 0, version: 0, drawing: star() }));

it('what the system of a device keeps is 0 until it is stated, and differs between devices', () => {
  expect(reservedInput(2)).toContain('value="0"');
  editor().edit((old) => updateDevices(old, ['device-1'], { reserved_bytes: 1.5e9 }));
  expect(reservedInput(1)).toContain('value="1.5"');
  expect(reservedInput(2)).toContain('placeholder="different"');
});
