import { command } from '@/api/command';

/** More than ten times the size of a calibration; the server refuses larger ones, too. */
const LARGEST_BYTES = 1 << 20;

/** The name of a device for a file: lower-case letters, digits, - and _, at most 31 of them. */
export function machineName(file: string): string {
  const plain = file
    .replace(/\.json$/i, '')
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .replace(/-+$/, '');
  return plain.slice(0, 31) || 'machine';
}

/** The object in a calibration file. Throws an error with a sentence if it is too large or no JSON object. */
export async function readCalibration(file: File): Promise<Record<string, unknown>> {
  const remedy = `choose a file that ${command('calibrate --output')} has written.`;
  if (file.size > LARGEST_BYTES) throw new Error(`The file is larger than any calibration: ${remedy}`);
  try {
    const found: unknown = JSON.parse(await file.text());
    if (typeof found === 'object' && found !== null && !Array.isArray(found))
      return found as Record<string, unknown>;
  } catch {
    // said below
  }
  throw new Error(`The file is no JSON object: ${remedy}`);
}
