import { expect, test } from 'vitest';
import { modelFiles, modelName, reasonAgainst } from './modelFiles';

const file = (path: string, size = 10) => ({
  name: path.split('/').at(-1) ?? '',
  size,
  webkitRelativePath: path.includes('/') ? path : '',
});
const words = (bytes: number) => `${bytes} B`;

test('of a folder only configuration, tokenizer, chat template and weights are sent, and nothing of folders in it', () => {
  const all = [
    file('gpt/config.json'),
    file('gpt/model.safetensors'),
    file('gpt/chat_template.jinja'),
    file('gpt/README.md'),
    file('gpt/pytorch_model.bin'),
    file('gpt/onnx/config.json'),
  ];
  expect(modelFiles(all).map((each) => each.name)).toEqual([
    'config.json',
    'model.safetensors',
    'chat_template.jinja',
  ]);
  expect(modelFiles([file('config.json')])).toHaveLength(1);
});

test('a model is named after its folder', () => {
  expect(modelName([file('.my model (2)/config.json')])).toBe('my-model-2-');
  expect(modelName([file('config.json')])).toBe('');
  expect(modelName([])).toBe('');
});

test('files that cannot be a model are refused before they are sent', () => {
  const config = file('m/config.json');
  const weights = file('m/model.safetensors', 90);
  expect(reasonAgainst([weights], 1000, words)).toContain('no config.json');
  expect(reasonAgainst([config], 1000, words)).toContain('no weights');
  expect(reasonAgainst([config, weights], 99, words)).toContain('have 100 B, and the limit is 99 B');
  expect(reasonAgainst([config, weights], 100, words)).toBe('');
});
