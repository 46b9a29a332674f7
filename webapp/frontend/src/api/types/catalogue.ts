/** What there is to choose from: names for the generated types. A parameters' form follows their JSON schema. */
import type { Schemas } from './schemas';

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

export type StrategyRow = Omit<Schemas['StrategyOut'], 'params_schema'> & { params_schema: ParamsSchema };
/** `image_rows` are the rows that a picture has; 0 for a model that sees none. */
export type ModelRow = Schemas['ModelOut'];
/** A figure: a row of the server's table. */
export type Metric = Schemas['Metric'];
/** PNG in base64, as a model sees it. */
export type Picture = Schemas['PictureOut'];
export type DevicePreset = Schemas['DeviceSpec'];
export type LinkPreset = Schemas['LinkPreset'];
export type DiskPreset = Schemas['DiskPreset'];
export type Shape = Schemas['ShapeIn']['shape'];

export type Catalogue = Omit<Schemas['CatalogueOut'], 'strategies' | 'shapes'> & {
  strategies: StrategyRow[];
  shapes: Shape[];
};
