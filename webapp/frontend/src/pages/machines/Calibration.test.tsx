import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import type { FleetWorker } from '@/api/types';
import { CalibrateButton, Calibration } from './Calibration';

const NOW = Date.parse('2026-01-02T12:00:00Z');

function html(fields: Partial<FleetWorker>): string {
  const worker = {
    queue: 'emulate',
    refused: '',
    calibration: '',
    calibrated: '',
    calibrated_at: 0,
    calibration_takes_s: 42,
    calibration_wanted: false,
    calibrating: null,
    calibration_failure: '',
    calibration_caution: '',
    ...fields,
  } as FleetWorker;
  return renderToStaticMarkup(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <Calibration worker={worker} now={NOW} />
        <CalibrateButton worker={worker} />
      </QueryClientProvider>
    </MantineProvider>,
  );
}

test('a machine without a calibration offers one, with the time that it takes', () => {
  const shown = html({});
  expect(shown).toContain('not yet');
  expect(shown).toContain('Calibrate, 42 s');
  expect(shown).not.toContain('data-disabled="true"');
});

test('a calibration shows its digest and its age', () => {
  const shown = html({ calibration: 'abc123', calibrated_at: NOW / 1000 - 120 });
  expect(shown).toContain('abc123');
  expect(shown).toContain('2 minutes ago');
});

test('what is to be said beside its figures is said', () => {
  const caution = 'This host was calibrated beside other work.';
  expect(html({ calibration: 'abc123', calibration_caution: caution })).toContain(caution);
});

test('one under way shows how far it is and can be stopped, and the old one stays visible', () => {
  const calibrating = { what: 'kernels', about_s: 60, elapsed_s: 15 };
  const shown = html({ calibration: 'abc123', calibration_wanted: true, calibrating });
  for (const text of ['abc123', '15 s of about 60 s: kernels', 'aria-valuenow="25"', 'Stop calibrating'])
    expect(shown).toContain(text);
});

test('a failure is said, and a worker that takes nothing offers none', () => {
  const shown = html({ calibration_failure: 'Calibrating failed: no memory.', refused: 'it was drained' });
  expect(shown).toContain('Calibrating failed: no memory.');
  expect(shown).toContain('data-disabled="true"');
});
