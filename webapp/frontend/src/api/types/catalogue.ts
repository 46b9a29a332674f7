import type { DeviceSpec } from './cluster';

/** One property of a strategy's JSON schema, as far as forms need it. */
export interface SchemaProperty {
  type?: 'integer' | 'number' | 'string' | 'boolean' | 'array' | 'object' | 'null';
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  anyOf?: SchemaProperty[];
  items?: SchemaProperty;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  exclusiveMaximum?: number;
  $ref?: string;
}

export interface ParamsSchema {
  properties?: Record<string, SchemaProperty>;
  required?: string[];
  $defs?: Record<string, SchemaProperty>;
}

export interface StrategyRow {
  name: string;
  title: string;
  paper: string;
  summary: string;
  lossless: boolean;
  params_schema: ParamsSchema;
}

export interface ModelRow {
  name: string;
  title: string;
  family: string;
  num_layers: number;
  hidden_size: number;
  num_heads: number;
  num_kv_heads: number;
  num_parameters: number;
  weight_bytes: number;
  trained: boolean;
  causal: boolean;
  has_head: boolean;
  reads_text: boolean;
  /** Rows that a picture has; 0 for a model that sees none. */
  image_rows: number;
  num_classes: number;
  max_positions: number;
  source: string;
}

/** PNG in base64, as a model sees it. */
export interface Picture {
  image: string;
  image_size: number;
}

export type DevicePreset = Omit<DeviceSpec, 'role'> & { role?: DeviceSpec['role'] };

export interface TopologyRow {
  name: string;
  title: string;
  description: string;
}

export type Shape = 'star' | 'ring' | 'mesh' | 'tree';

export interface Catalogue {
  strategies: StrategyRow[];
  models: ModelRow[];
  presets: DevicePreset[];
  topologies: TopologyRow[];
  shapes: Shape[];
}
