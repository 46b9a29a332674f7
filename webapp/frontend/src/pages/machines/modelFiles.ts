import { command } from '@/api/command';

/** What is read of a Hugging Face directory: its configuration, tokenizer, chat template and weights. */
const READ = /\.(safetensors|json|jinja)$/i;

/** A file as the browser gives it: with its path below the chosen folder, if one was chosen. */
export interface Chosen {
  name: string;
  size: number;
  webkitRelativePath?: string;
}

/** The files of a folder, not of folders in it, that a model can need. */
export function modelFiles<T extends Chosen>(files: readonly T[]): T[] {
  return files.filter((file) => READ.test(file.name) && depth(file) <= 2);
}

function depth(file: Chosen): number {
  return (file.webkitRelativePath || file.name).split('/').length;
}

/** A name for the model: that of the folder, with only what a name may have. */
export function modelName(files: readonly Chosen[]): string {
  const folder = files[0]?.webkitRelativePath?.split('/')[0] ?? '';
  return folder
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 60);
}

/** Why these files cannot be a model, in a sentence; empty if they may be one. */
export function reasonAgainst(
  files: readonly Chosen[],
  limitBytes: number,
  human: (b: number) => string,
): string {
  if (!files.some((file) => file.name === 'config.json'))
    return 'There is no config.json among the files: choose the folder of a Hugging Face model.';
  if (!files.some((file) => file.name.endsWith('.safetensors')))
    return 'There are no weights (.safetensors) among the files: choose a folder that has them.';
  const bytes = totalBytes(files);
  if (bytes > limitBytes)
    return `The files have ${human(bytes)}, and the limit is ${human(limitBytes)}: use ${command('models add')} on the server.`;
  return '';
}

export function totalBytes(files: readonly Chosen[]): number {
  return files.reduce((sum, file) => sum + file.size, 0);
}
