import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['src/types/'] },
  ...tseslint.configs.recommended,
  {
    files: ['src/**/*.ts'],
    rules: {
      '@typescript-eslint/explicit-function-return-type': [
        'error',
        { allowTypedFunctionExpressions: false },
      ],
    },
  },
);
