/** The formats of a cluster file: they hold the same keys. */

export type FileFormat = 'toml' | 'json' | 'yaml';

export const FILE_FORMATS: readonly { form: FileFormat; title: string; ends: readonly string[] }[] = [
  { form: 'toml', title: 'TOML', ends: ['.toml'] },
  { form: 'yaml', title: 'YAML', ends: ['.yaml', '.yml'] },
  { form: 'json', title: 'JSON', ends: ['.json'] },
];
